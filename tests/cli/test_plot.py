"""``plot``: a file, or one line that says why not."""

from __future__ import annotations

import pytest

LOSS = "imp_loss1_write.server.pcap.gz"
BEGINNINGS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "jpg": b"\xff\xd8\xff", "webp": b"RIFF"}


@pytest.mark.parametrize("kind", ["sequence", "rate"])
def test_a_picture_for_the_only_connection(call, samples, tmp_path, kind):
    picture = tmp_path / "x.png"
    done = call("plot", kind, samples / LOSS, "-o", picture)
    assert (done.status, done.out, done.err) == (0, "", [])
    assert picture.read_bytes().startswith(BEGINNINGS["png"])


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_format_by_suffix(call, samples, tmp_path, suffix):
    picture = tmp_path / f"x.{suffix.upper()}"
    assert call("plot", "rate", samples / LOSS, "-o", picture, "--connection", "1").status == 0
    assert picture.read_bytes().startswith(BEGINNINGS[suffix])


def test_size_in_pixels(call, samples, tmp_path):
    picture = tmp_path / "x.png"
    assert call("plot", "rate", samples / LOSS, "-o", picture, "--size", "4x3", "--dpi", "50").status == 0
    header = picture.read_bytes()[16:24]
    assert (int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")) == (200, 150)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["rate", LOSS, "-o", "x.gif"], "x.gif: the picture's suffix must be one of png, pdf, svg, jpg, webp"),
        (["rate", LOSS, "-o", "x"], "x: the picture's suffix must be"),
        (["rate", "-", "-o", "x.png"], "a picture reads the capture twice: give a file, not a pipe"),
        (["sequence", LOSS, "-o", "x.png", "--connection", "2"], "there is no connection 2 (most affected first"),
        (["sequence", "cm_refused.client.pcap.gz", "-o", "x.png"], "which connection? --connection N (most affected"),
        (["sequence", "ud_mix_ipv4.server.pcap.gz", "-o", "x.png"], "no connection in this capture"),
        (["rate", LOSS, "-o", "no/such/folder/x.png"], "no/such/folder/x.png: No such file or directory"),
        (["rate", LOSS, "-o", "x.png", "--size", "big"], "Invalid value for '--size'"),
        (["rate", LOSS], "Missing option '-o'"),
        (["pie", LOSS, "-o", "x.png"], "Invalid value"),
    ],
)
def test_refusals(call, samples, tmp_path, monkeypatch, arguments, reason):
    monkeypatch.chdir(tmp_path)
    places = [str(samples / one) if one.endswith(".pcap.gz") else one for one in arguments]
    done = call("plot", *places)
    assert (done.status, done.out, len(done.err)) == (2, "", 1)
    assert reason in done.err[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
@pytest.mark.parametrize(
    ("size", "dpi", "pixels"),
    [
        ("200x200", 1200, "240,000 x 240,000 pixels"),
        ("0.5x200", 81, "40 x 16,200 pixels"),  # webp ends at 16,383
        ("200x1", 100, "20,000 x 100 pixels"),
        ("101x100", 100, "10,100 x 10,000 pixels"),
    ],
)
def test_a_picture_too_large_is_refused_before_reading(call, tmp_path, monkeypatch, suffix, size, dpi, pixels):
    monkeypatch.chdir(tmp_path)
    done = call("plot", "rate", "missing.pcap", "-o", f"x.{suffix}", "--size", size, "--dpi", str(dpi))
    assert (done.status, done.out, len(done.err)) == (2, "", 1)
    assert pixels in done.err[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["webp", "png"])
def test_the_longest_picture_is_drawn(call, samples, tmp_path, suffix):
    picture = tmp_path / f"x.{suffix}"
    done = call("plot", "rate", samples / LOSS, "-o", picture, "--size", "200x2", "--dpi", "80")
    assert (done.status, done.err) == (0, [])
    assert picture.read_bytes().startswith(BEGINNINGS[suffix])


@pytest.mark.parametrize("suffix", ["pdf", "svg"])
def test_pictures_without_pixels_have_any_size(call, samples, tmp_path, suffix):
    picture = tmp_path / f"x.{suffix}"
    done = call("plot", "rate", samples / LOSS, "-o", picture, "--size", "200x200", "--dpi", "1200")
    assert (done.status, done.err) == (0, [])
    assert picture.read_bytes().startswith(BEGINNINGS[suffix])


def test_a_broken_capture_is_drawn_as_far_as_it_goes(call, samples, plain, tmp_path):
    content = bytearray(plain(samples / LOSS).read_bytes())
    end = 24
    for _ in range(800):
        end += 16 + int.from_bytes(content[end + 8 : end + 12], "little")
    content[end + 8 : end + 12] = b"\xff" * 4
    (tmp_path / "broken.pcap").write_bytes(content)
    done = call("plot", "sequence", tmp_path / "broken.pcap", "-o", tmp_path / "x.png")
    assert done.status == 2
    assert len(done.err) == 1
    assert (tmp_path / "x.png").stat().st_size > 1000
