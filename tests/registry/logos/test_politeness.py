"""Several sites are asked at once, each by one request after another."""

import threading
from collections import deque
from queue import SimpleQueue

from make.pictures import picture
from muniment.registry.logos import fetching
from muniment.registry.logos.fetching import MAX_FAULTS, Drawn, LogoFault, fetch_all


def all_of(addresses, **options):
    return {each.address: each for each in fetch_all(addresses, **{"within_s": 30, "pause_s": 0, **options})}


def test_a_site_has_one_request_at_a_time_and_several_sites_are_asked_at_once(site):
    met = threading.Barrier(2, timeout=60)

    def meet(request):
        met.wait()
        request.send_response(404)
        request.end_headers()

    site.files |= {"/meet": meet, **{f"/{n}": picture() for n in range(6)}}
    addresses = [f"http://{host}.example/{path}" for host in ("logos", "other") for path in ("meet", *range(6))]
    found = all_of(addresses)
    assert found.keys() == set(addresses)
    assert sum(each.drawn is not None for each in found.values()) == 12
    assert site.most_at_once == 1


def test_each_address_is_asked_once(site):
    site.files["/0"] = picture()
    all_of(["http://logos.example/0"] * 5)
    assert site.asked == ["logos.example/0"]


def test_a_site_that_fails_again_and_again_is_left_in_peace(site):
    site.files |= {f"/{n}": (503, {}) for n in range(20)}
    found = all_of([f"http://logos.example/{n}" for n in range(20)])
    assert len(found) == len(site.asked) == MAX_FAULTS


def test_a_site_that_answers_now_and_then_is_asked_on(site):
    faults = [(503, {})] * (MAX_FAULTS - 1)
    site.files |= {f"/{n}": answer for n, answer in enumerate([*faults, picture(), *faults, picture()])}
    assert len(all_of([f"http://logos.example/{n}" for n in range(2 * MAX_FAULTS)])) == 2 * MAX_FAULTS


def test_between_two_requests_to_a_site_is_a_pause_and_none_after_the_last(site):
    paused = []
    addresses = deque(f"http://logos.example/{n}" for n in range(3))
    fetching._fetch_host(addresses, SimpleQueue(), lambda: True, lambda: paused.append(len(site.asked)))
    assert paused == [1, 2]


def test_addresses_that_are_gone_do_not_count_against_their_site(site):
    assert len(all_of([f"http://logos.example/{n}" for n in range(20)])) == 20


def test_no_request_begins_after_the_time_is_up_or_when_told_to_stop(site):
    assert all_of(["http://logos.example/0"], within_s=0) == {}
    assert all_of(["http://logos.example/0"], stop=lambda: True) == {}
    assert site.asked == []


def test_a_reader_that_stops_early_ends_the_requests(site):
    site.files |= {f"/{n}": picture() for n in range(50)}
    arriving = fetch_all([f"http://logos.example/{n}" for n in range(50)], within_s=30, pause_s=0.01)
    next(arriving)
    arriving.close()
    assert len(site.asked) < 50


def test_a_fault_of_a_decoder_is_a_fault_of_its_address_alone(monkeypatch):
    def fetch(address):
        if address.endswith("bad"):
            raise MemoryError
        return Drawn(b"", b"")

    monkeypatch.setattr(fetching, "fetch_logo", fetch)
    found = all_of(["http://logos.example/bad", "http://logos.example/good", "http://[bad"])
    assert isinstance(found["http://logos.example/bad"].fault, LogoFault)
    assert found["http://logos.example/good"].drawn
