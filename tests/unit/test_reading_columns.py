from __future__ import annotations

import pytest

from shoal.errors import ColumnsNotFound
from shoal.reading.columns import find_cell_columns, find_columns

CONVENTIONS = {
    "scikit-mobility": ("uid,datetime,lat,lng", "user=uid,time=datetime,lat=lat,lng=lng"),
    "mdl": ("user_id,timestamp,lon,lat", "user=user_id,time=timestamp,lat=lat,lng=lon"),
    "accio": ("id,time(ms),lat,lng", "user=id,time=time(ms),lat=lat,lng=lng"),
    "projected": ("user,time,x,y", "user=user,time=time,x=x,y=y"),
    "YJMob100K": ("uid,d,t,x,y", "user=uid,day=d,slot=t,x=x,y=y"),
    "capitals, spaces": (" UID ,DateTime,Latitude,Longitude", "user= UID ,time=DateTime,lat=Latitude,lng=Longitude"),
    "a row number beside": ("id,uid,time,lat,lng", "user=uid,time=time,lat=lat,lng=lng"),
    "own release": ("uid,t_start,t_end,x_min,datetime,lat,lng", "user=uid,time=datetime,lat=lat,lng=lng"),
    "degrees before x, y": ("uid,time,x,y,lat,lng", "user=uid,time=time,lat=lat,lng=lng"),
}


def roles(text):
    return dict(pair.split("=", 1) for pair in text.split(","))


@pytest.mark.parametrize(("names", "expected"), CONVENTIONS.values(), ids=CONVENTIONS)
def test_conventions(names, expected):
    assert find_columns(names.split(","), {}, "a.csv").of == roles(expected)


def test_flowkit_needs_the_cells_file():
    names = ["msisdn", "start_time", "location_id", "duration"]
    found = find_columns(names, {}, "a.csv", has_cells=True)
    assert found.of == {"user": "msisdn", "time": "start_time", "cell": "location_id"}
    assert found.ignored == ("duration",)
    with pytest.raises(ColumnsNotFound, match="`cells"):
        find_columns(names, {}, "a.csv")


def test_cells_are_used_when_they_are_given():
    names = ["uid", "time", "lat", "lng", "cell_id"]
    assert find_columns(names, {}, "a.csv").place == "degrees"
    assert find_columns(names, {}, "a.csv", has_cells=True).place == "cell"


def test_columns_are_set_one_by_one():
    names = ["who", "when", "lat", "lng", "uid", "x", "y"]
    found = find_columns(names, {"user": "who", "time": "WHEN"}, "a.csv")
    assert found.of == {"user": "who", "time": "when", "lat": "lat", "lng": "lng"}
    assert find_columns(names, {"time": "when", "x": "x"}, "a.csv").place == "metres"


@pytest.mark.parametrize(
    ("names", "given", "word"),
    [
        ("uid,user_id,time,lat,lng", {}, "several columns could be the user: uid, user_id"),
        ("uid,time,timestamp,lat,lng", {}, "several columns could be the time"),
        ("uid,time,lat", {}, "place"),
        ("time,lat,lng", {}, "user"),
        ("uid,lat,lng", {}, "time"),
        ("uid,time,lat,lng", {"user": "nobody"}, "given for user"),
        ("u7,2008-02-02 15:36:08,116.51172,39.92123", {}, "hold data, not names"),
    ],
)
def test_missing_or_ambiguous_columns_say_what_to_do(names, given, word):
    with pytest.raises(ColumnsNotFound, match=word) as caught:
        find_columns(names.split(","), given, "a.csv")
    assert "116.5" not in str(caught.value)
    assert "u7" not in str(caught.value)


def test_names_that_may_be_data_are_not_shown():
    with pytest.raises(ColumnsNotFound) as caught:
        find_columns(["ann@example.org", "hour", "where", "lat"], {}, "a.csv")
    assert "the columns are: (a column), (a column), (a column), lat;" in str(caught.value)


def test_the_unit_in_the_name():
    assert find_columns(["id", "time(ms)", "lat", "lng"], {}, "a.csv").unit == "ms"
    assert find_columns(["id", "time", "lat", "lng"], {}, "a.csv").unit is None


def test_cells_file():
    assert find_cell_columns(["id", "lat", "lng", "date"], "c.csv") == {"id": "id", "lat": "lat", "lng": "lng"}
    with pytest.raises(ColumnsNotFound, match="lng"):
        find_cell_columns(["id", "lat"], "c.csv")


USERS = {
    "id,user_id": "user_id",
    "id,msisdn,imei": "msisdn",
    "uid,trip_id": "uid",
    "uid,id": "uid",
    "uid,venue_id,route_id": "uid",
    "customer_id,phone_number": "customer_id",
    "vehicle_id,trip_id": "vehicle_id",
    "id,cell_id": "id",
    "_id,UserID": "UserID",
    "id,customer": None,
    "id,vehicle_id": None,
    "id,name": None,
    "id,passengerRef": None,
    "id,trip_id": None,
    "uid,customer_ref": None,
    "uid,device_id": None,
    "vehicle_id,driver_id": None,
    "user_id,msisdn": None,
    "UID,uid": None,
    "trip_id": None,
    "session": None,
    "bike_id": None,
    "customer_code_key": None,
    "row_id": None,
}


@pytest.mark.parametrize(("names", "expected"), USERS.items(), ids=USERS)
def test_a_row_or_a_trip_is_never_taken_for_the_person(names, expected):
    names = [*names.split(","), "datetime", "lat", "lng"]
    if expected is not None:
        assert find_columns(names, {}, "a.csv").of["user"] == expected
        return
    with pytest.raises(ColumnsNotFound, match='columns="') as caught:
        find_columns(names, {}, "a.csv")
    assert "user=" in str(caught.value)
    told = find_columns(names, {"user": names[0]}, "a.csv")
    assert told.of["user"] == names[0], "what is told is taken"


def test_everything_that_is_missing_is_said_at_once_with_what_was_found():
    with pytest.raises(ColumnsNotFound) as caught:
        find_columns(["id", "customer", "Zeit", "where"], {}, "a.csv")
    said = str(caught.value)
    assert "can't find columns for the place" in said
    assert "several columns could be the user: id, customer" in said
    assert '`columns="time=Zeit,user=…,lat=…,lng=…"`' in said


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        ("uid,date,time,lat,lng", {}, {"date": "date", "time": "time"}),
        ("uid,date,time,timestamp,lat,lng", {}, {"time": "timestamp"}),
        ("uid,Fecha,Hora,lat,lng", {}, {"date": "Fecha", "time": "Hora"}),
        ("uid,fecha,lat,lng", {}, {"time": "fecha"}),
        ("uid,d1,t1,lat,lng", {"date": "d1", "time": "t1"}, {"date": "d1", "time": "t1"}),
        ("uid,date,time,lat,lng", {"time": "time"}, {"time": "time"}),
    ],
)
def test_date_and_time_of_day_in_two_columns(names, given, expected):
    found = find_columns(names.split(","), given, "a.csv").of
    assert {role: found[role] for role in ("date", "time") if role in found} == expected
