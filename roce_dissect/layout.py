"""The row of header words between the kernel's walker and its columns.

A row is `WORDS` unsigned 64-bit words in native order. Headers are loaded big-endian into whole words, so that each
field is one (word, shift, mask): see `roce_dissect.columns`. What IPv4, IPv6 and GRH have in common is brought to one
place here, so that ``dscp`` or ``src`` is one column whatever the version. Words from `COMMON` on are rare and only
cleared where the row's previous packet had used them.

The names are C constants in the compiled kernel: ``tools/make_pxd.py`` writes ``kernel.pxd`` from this file.
"""

from __future__ import annotations

from roce_dissect.spec.headers import *  # the presence bits belong to the layout
from roce_dissect.spec.headers import (
    HAS_ATOMIC_ACK_ETH,
    HAS_ATOMIC_ETH,
    HAS_DETH,
    HAS_FETH,
    HAS_GRE_SEQ,
    HAS_IETH,
    HAS_LRH,
    HAS_OUTER_IP,
    HAS_RDETH,
    HAS_SESSION,
    HAS_TUNNEL,
    HAS_VNI,
    HAS_XRCETH,
)
from roce_dissect.spec.net import *  # and the kernel needs the numbers of types, protocols and ports

# -- words of a row
TIME = 0  # ns since the epoch
FRAME = 1  # file << 40 | frame number
LENGTHS = 2  # captured << 32 | on the wire
STATE = 3  # presence << 32 | version << 8 | status
PAYLOAD = 4  # payload length << 32 | offset in the frame where decoding stopped
OFFSET = 5  # of the frame in the batch's bytes; from bit 40 on, of the network header (LRH, GRH, IP) in the frame
HOSTS = 6  # code of the source << 32 | code of the destination
ETH = 7  # bytes 0-7; bytes 6-13
VLAN = 9  # second TCI << 16 | first TCI
NET = 10  # traffic class << 56 | TTL << 48 | IPv4 identification << 32 | flow label
CHECK = 11  # IP total or payload length << 32 | ICRC as zlib computes it
UDP = 12
BTH = 13  # bytes 0-7; bytes 4-11
RETH = 15  # virtual address; R_Key << 32 | DMA length (AtomicETH: the length is 0)
ACK = 17  # AETH << 32 | ImmDt
COMMON = 18
DETH = 18
KEYS = 19  # XRCETH << 32 | IETH
ATOMIC = 20  # swap or add; compare
ATOMIC_ACK = 22
RDETH = 23  # RDETH << 32 | FETH
TUNNEL = 24  # VNI << 32 | session << 16 | how many tunnels << 8 | innermost tunnel
OUTER = 25  # code of the outer source << 32 | code of the outer destination
GRE_SEQ = 26
LRH = 27
WORDS = 28
#: Place of the network header's offset in OFFSET, and the greatest one that is told.
NETWORK = 40
MOST_NETWORK = (1 << 24) - 1

#: Headers whose words are rare.
RARE = HAS_RDETH | HAS_DETH | HAS_XRCETH | HAS_FETH | HAS_ATOMIC_ETH | HAS_ATOMIC_ACK_ETH | HAS_IETH
RARE |= HAS_TUNNEL | HAS_OUTER_IP | HAS_VNI | HAS_SESSION | HAS_GRE_SEQ | HAS_LRH
#: Header chain of an opcode that does not exist.
UNKNOWN_OPCODE = 0x8000

# -- status of a row: `roce_dissect.terms.Status` as C constants
STATUS_OK = 0
STATUS_CUT = 1
STATUS_MALFORMED = 2
STATUS_UNKNOWN_OPCODE = 3
STATUS_UNKNOWN_VERSION = 4
STATUS_FRAGMENT = 5

# -- the kernel's tallies: what the frames were (a RoCE frame is a row; the others are only counted)
TALLY_ROCE = 0
TALLY_CUT = 1  # too short to tell
TALLY_FRAGMENT = 2  # an IP fragment other than the first
TALLY_MALFORMED = 3  # a length or version that contradicts itself, below UDP
TALLY_LINK = 4  # a link type that is not decoded
TALLY_ARP = 5
TALLY_MAC_CONTROL = 6
TALLY_LLDP = 7
TALLY_TCP = 8
TALLY_UDP = 9  # another port
TALLY_ICMP = 10
TALLY_IP = 11  # another protocol
TALLY_ETHERNET = 12  # another Ethertype
TALLY_TUNNEL = 13  # tunnels nested too deep, or of a version that is not known
TALLY_MORE = 15  # never counted: the kernel's word for "a tunnel follows"
TALLIES = 16

# -- tunnels: `roce_dissect.terms.Tunnel` as C constants
TUNNEL_VXLAN = 1
TUNNEL_GENEVE = 2
TUNNEL_GRE = 3
TUNNEL_GRETAP = 4
TUNNEL_NVGRE = 5
TUNNEL_ERSPAN1 = 6
TUNNEL_ERSPAN2 = 7
TUNNEL_ERSPAN3 = 8
TUNNEL_IPIP = 9
TUNNEL_MPLS = 10
#: Tunnels within each other, at most; MPLS counts as one whatever the number of its labels.
MOST_TUNNELS = 4
MOST_LABELS = 16  # of one MPLS stack
#: What led to a tunnel: while a frame is on its way through tunnels, a row's OFFSET holds this, PAYLOAD where the
#: tunnel's header begins, LENGTHS the presence bits of the link.
LEADS_VXLAN = 1
LEADS_GENEVE = 2
LEADS_GRE = 3
LEADS_IPV4 = 4
LEADS_IPV6 = 5
LEADS_MPLS = 6
LEADS_MPLS_IN_IP = 7

#: Native InfiniBand without a GRH has LIDs in the place of addresses. Among the hosts a LID is ``::fffe:0:<LID>``: this
#: is the block, which is never assigned.
LID_BLOCK = 0xFFFE

# -- further UDP ports of RoCE v2 stand behind the 256 header chains of the opcodes
PORTS = 256
MOST_PORTS = 16
#: Behind those: 1 where packets *from* port 4791 are rows, too, for the ICRC to say whether they are RoCE.
REPLIES = 272
CHAINS = 273
