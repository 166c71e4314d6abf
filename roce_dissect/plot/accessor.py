"""``result.plot``: the pictures of an `Analysis`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from roce_dissect.api import Analysis

__all__ = ["PlotAccessor"]


class PlotAccessor:
    """Pictures of one analysis. Each method returns the Axes it drew in, and neither shows nor saves anything.

    Parameters
    ----------
    analysis : Analysis
        Its capture is read once more for each picture, in bounded memory.

    Examples
    --------
    >>> import roce_dissect as rd
    >>> ax = rd.analyze("pcaps/imp_loss1_write.server.pcap.gz").plot.sequence()  # doctest: +SKIP
    >>> ax.figure.savefig("sequence.png")  # doctest: +SKIP
    """

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def sequence(self, connection: int = 1, ax: Axes | None = None, *, relative: bool = False) -> Axes:
        """Time against PSN: requests and READ responses, resends, gaps, NAKs, and the line of what was acknowledged.

        Where both ends sent requests, a new figure has a panel for each (their PSNs have nothing to do with each
        other): the one with more payload above. Up to 20,000 points of a kind all are drawn; beyond that, one for each
        place in the picture, and a note says how many.

        Parameters
        ----------
        connection : int
            Number in the connections table.
        ax : matplotlib.axes.Axes, optional
            Where to draw; then only the direction with more payload. Default: a new figure.
        relative : bool
            Count PSNs from the first one that was seen.

        Returns
        -------
        matplotlib.axes.Axes
            The upper panel; all of them are ``ax.figure.axes``. Time is in the unit that the axis names, PSNs are
            unwrapped (``psn_ext``), and labelled as they are on the wire.

        Raises
        ------
        ArgumentError
            There are connections, but not this one; or the capture was a pipe.
        CaptureError
            The capture cannot be read again.
        """
        from roce_dissect.plot.sequence import draw_sequence

        return draw_sequence(self._analysis, connection, ax, relative=relative)

    def rate(self, connection: int | None = None, ax: Axes | None = None, *, bin_ns: int | None = None) -> Axes:
        """Goodput over time, with counts of resends, gaps, NAKs, CE marks and CNPs below.

        Goodput is the payload of what was new to the capture point, as in the column ``goodput_bytes``: the bins add up
        to it.

        Parameters
        ----------
        connection : int, optional
            Number in the connections table: a line for each direction. Default: the whole capture, a line for each
            sending host.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.
        bin_ns : int, optional
            Bin width in nanoseconds. Default: one that suits the duration and the number of packets.

        Returns
        -------
        matplotlib.axes.Axes
            The rate. Where anything is counted, it gives way to a second one below, with the label ``counts``.

        Raises
        ------
        ArgumentError
            The connection does not exist, a bin width below 1, or the capture was a pipe.
        CaptureError
            The capture cannot be read again.
        """
        from roce_dissect.plot.rate import draw_rate

        return draw_rate(self._analysis, connection, ax, bin_ns=bin_ns)
