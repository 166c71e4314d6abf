"""The layers as a guest in a Scapy session: each case in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["roce_dissect", "scapy.layers.roce_dissect"])
def test_explore(name):
    shown = run(f"import roce_dissect.layers\nfrom scapy.all import explore\nexplore({name!r})")
    for layer in ("BTH", "GRH", "LRH", "RDETH", "XRCETH", "AtomicAckETH", "CNP"):
        assert f"|{layer}" in shown


def test_explore_by_menu_still_lists_all_of_scapys_layers():
    """Its list is `conf.layers.layers`, which fails on any layer outside of Scapy's package."""
    shown = run(
        "import roce_dissect.layers\nfrom scapy.all import conf\n"
        "for name, title in conf.layers.layers(): print(name, title)"
    )
    assert "scapy.layers.inet " in shown
    assert "scapy.layers.roce_dissect Scapy layers for RoCE v1, v2 and native InfiniBand" in shown


def test_load_layer_brings_the_names_into_the_session():
    run(
        "import roce_dissect.layers\nfrom scapy.all import load_layer\nsession = {}\n"
        "load_layer('roce_dissect', globals_dict=session)\n"
        "assert session['BTH'] is roce_dissect.layers.BTH and session['verify_icrc'] and 'bind' not in session"
    )


def test_ls():
    shown = run("from roce_dissect.layers import *\nfrom scapy.all import ls\nls(BTH)\nls(BTH() / RETH())\nls('RDETH')")
    assert "dest_qp" in shown
    assert "icrc" in shown
    assert "r_key" in shown
    assert "RDETH" in shown


def test_star_imports_in_either_order():
    ours = "from roce_dissect.layers import *\n"
    scapys = "from scapy.all import *\n"
    check = "assert IP().proto is not None and BTH().opcode == 4 and send.__module__ == 'scapy.sendrecv'\n"
    run(ours + scapys + check)
    run(scapys + ours + check)


@pytest.mark.parametrize("first", ["contrib", "ours"])
def test_load_contrib_before_or_after(first):
    """These layers win in dissection; each builds what it says under its own name, ICRC included."""
    lines = ["load_contrib('roce')", "import roce_dissect.layers as ours"]
    order = lines if first == "contrib" else lines[::-1]
    run(
        "from scapy.all import *\n" + "\n".join(order) + "\n"
        "import scapy.contrib.roce as contrib\n"
        "below = IP(src='192.0.2.1', dst='192.0.2.2') / UDP(sport=1234)\n"
        "theirs = bytes(below / contrib.BTH(opcode='RC_ACKNOWLEDGE', dqpn=0x12, psn=7) / contrib.AETH(msn=3))\n"
        "mine = bytes(below / ours.BTH(opcode='RC ACKNOWLEDGE', dest_qp=0x12, psn=7, p_key=0xffff)"
        " / ours.AETH(syndrome=0, msn=3))\n"
        "assert theirs == mine, (theirs.hex(), mine.hex())\n"  # an ICRC by other hands
        "read = IP(theirs)\n"
        "assert type(read[UDP].payload) is ours.BTH and ours.verify_icrc(read) is ours.CrcVerdict.GOOD\n"
        "assert type(contrib.BTH(theirs[28:]).payload) is contrib.AETH\n"
        "cnp = bytes(below / contrib.cnp(5))\n"
        "assert cnp == bytes(ours.cnp(below, dest_qp=5)), cnp.hex()\n"
    )


def test_pickles_and_copies():
    run(
        "import pickle\nfrom scapy.all import *\nfrom roce_dissect.layers import *\n"
        "packet = rdma_write(carrier('192.0.2.1', '192.0.2.2'), b'hello', dest_qp=1)[0]\n"
        "for one in (packet, Ether(bytes(packet))):\n"
        "    assert bytes(pickle.loads(pickle.dumps(one))) == bytes(one.copy()) == bytes(packet)\n"
    )
