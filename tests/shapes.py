# ruff: noqa: E501
"""Shapes of input as people have them: what each reads as, or what the message must say.

One row each; add rows here. `name` is the file's name, also with folders; `content` is text, bytes, or several files
by name. `labels`, `times` (ISO, in UTC) and `places` (lat, lng) are sorted by label and time. `says` are words of the
error, `notes` words of a note.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from datetime import date, datetime
from datetime import time as clock
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq


class Shape(NamedTuple):
    what: str
    name: str
    content: str | bytes | dict[str, str | bytes]
    options: dict[str, Any] = {}  # noqa: RUF012  never changed
    labels: list[Any] | None = None
    times: list[str] | None = None
    places: list[tuple[float, float]] | None = None
    says: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def lines(*rows):
    return "\n".join(rows) + "\n"


def csv(*rows, header="uid,datetime,lat,lng"):
    return lines(header, *rows)


def when(*times, header="uid,datetime,lat,lng"):
    """A file with one person at one place at these times."""
    return csv(*(f"a,{one},39.9,116.4" for one in times), header=header)


def packed(members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return sink.getvalue()


def table(kind="parquet", **columns):
    sink, made = io.BytesIO(), pa.table(columns)
    if kind == "parquet":
        pq.write_table(made, sink)
    else:
        with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(sink, made.schema) as out:
            out.write_table(made)
    return sink.getvalue()


def sheet(*rows):
    """An .xlsx file with these rows: texts, numbers, dates and times of day."""
    styles = '<cellXfs count="4"><xf/><xf numFmtId="22"/><xf numFmtId="14"/><xf numFmtId="21"/></cellXfs>'
    body = "".join("<row>" + "".join(map(_cell, row)) + "</row>" for row in rows)
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kinds}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {space} xmlns:r="{relations}"><sheets><sheet name="s" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{relations}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f"<styleSheet {space}>{styles}</styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{body}</sheetData></worksheet>",
    }
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
    return sink.getvalue()


def _cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    style = 0
    if isinstance(value, datetime):
        style, value = 1, (value - datetime(1899, 12, 30)).total_seconds() / 86_400
    elif isinstance(value, date):
        style, value = 2, (value - date(1899, 12, 30)).days
    elif isinstance(value, clock):
        style, value = 3, (value.hour * 3600 + value.minute * 60 + value.second) / 86_400
    return f'<c s="{style}"><v>{value!r}</v></c>'


PLT = lines(
    "Geolife trajectory", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,255,My Track,0,0,2,8421376", "0",
    "39.906631,116.385564,0,492,39745.1201851852,2008-10-24,02:53:04",
)  # fmt: skip
BEIJING = [(39.9, 116.4)]
A = ["a"]
APRIL = ["2012-04-03 18:00:09"]
GERMAN = "Nutzer;Datum;Uhrzeit;Breitengrad;Längengrad\nJürgen;03.04.2012;18:00:09;52,5163;13,3777\nJürgen;23.04.2012;18:00:09;52,5163;13,3777\n"
GERMAN_READ = {
    "labels": ["Jürgen"],
    "times": ["2012-04-03 18:00:09", "2012-04-23 18:00:09"],
    "places": [(52.5163, 13.3777)],
}
PLAIN = csv("a,2012-04-03 18:00:09,39.9,116.4")
READ = {"labels": A, "times": APRIL, "places": BEIJING}
BOTH = ('`time_format="dmy"` for day/month/year', '`time_format="mdy"` for month/day/year')
NUMBERS = 'columns="user=1,time=2,lat=3,lng=4"'

SHAPES = [
    # -- published data
    Shape(
        "Foursquare TSMC2014",
        "dataset_TSMC2014_NYC.txt",
        "470\t49bbd6c0\t4bf58dd8\tArts & Crafts Store\t40.7198\t-74.0025\t-240\tTue Apr 03 18:00:09 +0000 2012\n",
        {"columns": "user=1,lat=5,lng=6,time=8"},
        ["470"],
        APRIL,
        [(40.7198, -74.0025)],
    ),
    Shape(
        "Foursquare TSMC2014 as CSV",
        "a.csv",
        csv(
            "470,49bbd6c0,4bf58dd8,Arts & Crafts Store,40.7198,-74.0025,-240,Tue Apr 03 18:00:09 +0000 2012",
            header="userId,venueId,venueCategoryId,venueCategory,latitude,longitude,timezoneOffset,utcTimestamp",
        ),
        {"columns": "time=utcTimestamp"},
        ["470"],
        APRIL,
    ),
    Shape(
        "Gowalla of SNAP",
        "loc-gowalla_totalCheckins.txt",
        "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n",
        {"columns": "user=1,time=2,lat=3,lng=4"},
        ["0"],
        ["2010-10-19 23:55:27"],
        [(30.2359091167, -97.7951395833)],
    ),
    Shape(
        "Gowalla, without being told",
        "loc-gowalla_totalCheckins.txt",
        "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n",
        says=("hold data, not names", NUMBERS),
    ),
    Shape(
        "Brightkite, packed",
        "Brightkite_totalCheckins.txt.gz",
        gzip.compress(b"0\t2010-10-17T01:48:53Z\t39.747652\t-104.99251\t88c46bf20db295831bd2d1718ad7e6f5\n"),
        {"columns": "user=1,time=2,lat=3,lng=4"},
        ["0"],
        ["2010-10-17 01:48:53"],
    ),
    Shape(
        "GeoLife .plt",
        "Data",
        {"Data/000/Trajectory/20081024.plt": PLT, "Data/001/Trajectory/20081024.plt": PLT},
        {"columns": "user=@folder"},
        ["000", "001"],
        ["2008-10-24 02:53:04"] * 2,
        [(39.906631, 116.385564)] * 2,
    ),
    Shape("GeoLife .plt, without being told", "20081024.plt", PLT, says=('columns="user=@folder"',)),
    Shape(
        "GeoLife as CSV",
        "a.csv",
        csv("0,39.9,116.4,492,2008-10-23 02:53:04", header="user,lat,lon,alt,time"),
        {},
        ["0"],
        ["2008-10-23 02:53:04"],
        BEIJING,
    ),
    Shape(
        "T-Drive",
        "1.txt",
        "1,2008-02-02 15:36:08,116.51172,39.92123\n",
        {"columns": "user=1,time=2,lng=3,lat=4"},
        ["1"],
        ["2008-02-02 15:36:08"],
        [(39.92123, 116.51172)],
    ),
    Shape(
        "T-Drive, a folder",
        "taxis",
        {"taxis/1.txt": "1,2008-02-02 15:36:08,116.5,39.9\n", "taxis/2.txt": "2,2008-02-02 15:36:09,116.5,39.9\n"},
        {"columns": "user=1,time=2,lng=3,lat=4"},
        ["1", "2"],
    ),
    Shape(
        "T-Drive, without being told",
        "1.txt",
        "1,2008-02-02 15:36:08,116.51172,39.92123\n",
        says=("add a line of column names", NUMBERS, "user=@file"),
    ),
    Shape(
        "Porto taxis",
        "train.csv",
        csv(
            '"1372636858620000589","C","","","20000589","1372636858","A","False","[[-8.618643,41.141412]]"',
            header="TRIP_ID,CALL_TYPE,ORIGIN_CALL,ORIGIN_STAND,TAXI_ID,TIMESTAMP,DAY_TYPE,MISSING_DATA,POLYLINE",
        ),
        says=("columns for the place", "POLYLINE"),
    ),
    Shape(
        "Cabspotting",
        "new_abboip.txt",
        "37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 0 1213084659\n",
        {"columns": "user=@file,lat=1,lng=2,time=4"},
        ["new_abboip"],
        ["2008-06-10 07:57:39", "2008-06-10 07:58:07"],
        [(37.75136, -122.39527), (37.75134, -122.39488)],
    ),
    Shape(
        "Cabspotting with more blanks",
        "new_abboip.txt",
        " 37.75134  -122.39488 0 1213084687 \n37.75136 -122.39527 0 1213084659\n",
        {"columns": "user=@file,lat=1,lng=2,time=4"},
        ["new_abboip"],
        ["2008-06-10 07:57:39", "2008-06-10 07:58:07"],
    ),
    Shape(
        "NYC taxis 2013",
        "trip_data.csv",
        csv(
            "89D2,BA96,2013-01-01 15:11:48,-73.978165,40.757977",
            header="medallion,hack_license,pickup_datetime,pickup_longitude,pickup_latitude",
        ),
        says=("user=medallion", "pickup_datetime", "time=…", "lat=…"),
    ),
    Shape(
        "NYC taxis 2013, told",
        "trip_data.csv",
        csv(
            "89D2,BA96,2013-01-01 15:11:48,-73.978165,40.757977",
            header="medallion,hack_license,pickup_datetime,pickup_longitude,pickup_latitude",
        ),
        {"columns": "time=pickup_datetime,lat=pickup_latitude,lng=pickup_longitude", "tz": "America/New_York"},
        ["89D2"],
        ["2013-01-01 20:11:48"],
    ),
    Shape(
        "NYC taxis of today",
        "a.parquet",
        table(VendorID=[1], tpep_pickup_datetime=[datetime(2024, 1, 1)], PULocationID=[186]),
        says=("can't find a column for the user", "columns for the place"),
    ),
    Shape(
        "Divvy, Citi Bike",
        "tripdata.csv",
        csv(
            "A1,classic_bike,2024-01-01 00:00:00,2024-01-01 00:10:00,41.9,-87.6,member",
            header="ride_id,rideable_type,started_at,ended_at,start_lat,start_lng,member_casual",
        ),
        says=("a trip or a session is not a person", "user=…"),
    ),
    Shape(
        "D4D calls with a file of antennas",
        "calls.csv",
        csv("1,2013-01-07 13:10:00,461", header="user_id,timestamp,site_id"),
        says=("`cells`",),
    ),
    Shape(
        "Telecom Italia grid",
        "sms-call-internet-mi.txt",
        "1\t1383260400000\t0\t0.081363\t\t\t\t\n",
        says=("hold data, not names", "give the columns by their numbers"),
    ),
    Shape(
        "Shanghai Telecom",
        "a.xlsx",
        sheet(
            ["month", "date", "start time", "end time", "latitude", "longitude", "user id"],
            ["2014.06", 1.0, "2014-06-01 00:42:26", "2014-06-01 00:55:00", 31.2, 121.4, "edbc"],
        ),
        {},
        ["edbc"],
        ["2014-06-01 00:42:26"],
        [(31.2, 121.4)],
    ),
    Shape("YJMob100K", "a.csv", csv("0,0,1,79,86", header="uid,d,t,x,y"), {"cell": "500m", "slot": "30min"}, ["0"]),
    Shape(
        "GTFS-RT vehicle positions",
        "a.csv",
        csv("v1,t9,1583250409,59.3,18.0", header="vehicle_id,trip_id,timestamp,latitude,longitude"),
        {},
        ["v1"],
        ["2020-03-03 15:46:49"],
    ),
    Shape(
        "AIS Denmark",
        "aisdk.csv",
        csv(
            "31/12/2015 23:59:59,Class A,219,56.1,12.1,Under way",
            header="# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Navigational status",
        ),
        {},
        ["219"],
        ["2015-12-31 23:59:59"],
        [(56.1, 12.1)],
        notes=("day/month/year",),
    ),
    Shape(
        "AIS Denmark, only the first days of a month",
        "aisdk.csv",
        csv("01/12/2015 23:59:59,Class A,219,56.1,12.1", header="# Timestamp,Type of mobile,MMSI,Latitude,Longitude"),
        says=BOTH,
    ),
    Shape(
        "AIS of the US",
        "AIS.csv",
        csv("367,2020-06-25T23:59:59,41.1,-71.9,0.1", header="MMSI,BaseDateTime,LAT,LON,SOG"),
        {},
        ["367"],
        ["2020-06-25 23:59:59"],
    ),
    Shape(
        "Movebank",
        "a.csv",
        csv(
            '1,true,2008-05-30 14:03:13.000,9.1,47.7,"gps","Ciconia","3055","Anni","storks"',
            header="event-id,visible,timestamp,location-long,location-lat,sensor-type,individual-taxon-canonical-name,tag-local-identifier,individual-local-identifier,study-name",
        ),
        {},
        ["Anni"],
        ["2008-05-30 14:03:13"],
        [(47.7, 9.1)],
    ),
    Shape(
        "Strava-like records",
        "a.json",
        json.dumps([{"athlete_id": 7, "time": "2020-01-05T08:00:00Z", "lat": 1.5, "lng": 2.5}], indent=1),
        {"columns": "user=athlete_id"},
        ["7"],
        ["2020-01-05 08:00:00"],
        [(1.5, 2.5)],
    ),
    Shape(
        "Google Takeout-like records",
        "Records.json",
        json.dumps({"locations": [{"latitudeE7": 1, "timestamp": "x"}]}),
        says=("no records in it",),
    ),
    Shape(
        "OwnTracks",
        "a.jsonl",
        '{"_type":"location","lat":48.85833,"lon":2.29513,"tst":1497476456,"tid":"JJ"}\n',
        {"columns": "user=tid"},
        ["JJ"],
        ["2017-06-14 21:40:56"],
        [(48.85833, 2.29513)],
    ),
    Shape(
        "OwnTracks, without being told",
        "a.jsonl",
        '{"_type":"location","lat":48.85833,"lon":2.29513,"tst":1497476456,"tid":"JJ"}\n',
        says=("can't find a column for the user", "_type, lat, lon, tst, tid"),
    ),
    Shape(
        "Traccar",
        "positions.csv",
        csv(
            "8358,navtelecom,3,2024-12-14 23:04:12.695000,2024-12-14 22:52:11,2024-12-14 22:52:10,64.3,41.0",
            header="ID,PROTOCOL,DEVICEID,SERVERTIME,DEVICETIME,FIXTIME,LATITUDE,LONGITUDE",
        ),
        says=(
            '`columns="user=ID"` or `columns="user=DEVICEID"`',
            "several columns could be the time: DEVICETIME, FIXTIME",
        ),
    ),
    Shape(
        "OsmAnd records of Traccar",
        "a.ndjson",
        '{"location":{"timestamp":"2000-01-01T00:00:00.000Z","coords":{"latitude":1.5,"longitude":2.5}},"device_id":"48241179"}\n',
        {"columns": "time=location.timestamp,lat=location.coords.latitude,lng=location.coords.longitude"},
        ["48241179"],
        ["2000-01-01 00:00:00"],
    ),
    Shape("scikit-mobility", "a.csv", PLAIN, {}, **READ),
    Shape(
        "scikit-mobility with trajectories",
        "a.csv",
        csv("a,1,2012-04-03 18:00:09,39.9,116.4", header="uid,tid,datetime,lat,lng"),
        {},
        **READ,
    ),
    Shape(
        "MovingPandas",
        "a.csv",
        csv("1,2018-01-01 12:00:00,1.5,2.5", header="traj_id;t;x;y".replace(";", ",")),
        says=("a trip or a session is not a person",),
    ),
    Shape("FlowKit", "a.csv", csv("a,2016-01-01 00:02:00,5", header="msisdn,datetime,location_id"), says=("`cells`",)),
    Shape("privkit", "a.csv", csv("a,39.9,116.4,1333476009", header="user_id,lat,lon,timestamp"), {}, **READ),
    Shape("accio", "a.csv", csv("a,1333476009000,39.9,116.4", header="id,time(ms),lat,lng"), {}, **READ),
    Shape(
        "mPat of Shenzhen",
        "TaxiData",
        {"TaxiData/a.txt": "22223,2013-10-22 08:49:25,114.116631,22.582466,0\n"},
        {"columns": "user=1,time=2,lng=3,lat=4", "tz": "Asia/Shanghai"},
        ["22223"],
        ["2013-10-22 00:49:25"],
    ),
    Shape(
        "plates of Chinese taxis, GB 18030",
        "a.csv",
        "车牌号,时间,经度,纬度\n粤B12345,2012-04-03 18:00:09,116.4,39.9\n".encode("gb18030"),
        {"encoding": "GB18030"},
        ["粤B12345"],
        APRIL,
        BEIJING,
    ),
    Shape(
        "Oyster cards",
        "a.csv",
        csv("a,03-Apr-12,18:00:09,39.9,116.4", header="card_id,date,time,lat,lng"),
        says=("time_format=",),
    ),
    Shape(
        "Oyster cards, told",
        "a.csv",
        csv("a,03-Apr-12,18:00:09,39.9,116.4", header="card_id,date,time,lat,lng"),
        {"time_format": "dmy"},
        **READ,
    ),
    # -- columns
    Shape(
        "a row number beside a customer",
        "a.csv",
        csv("1,c,2012-04-03 18:00:09,39.9,116.4", header="id,customer_ref,datetime,lat,lng"),
        says=("several columns could be the user: id, customer_ref", 'columns="user=customer_ref"'),
    ),
    Shape(
        "a row number beside an unknown key",
        "a.csv",
        csv("1,c,2012-04-03 18:00:09,39.9,116.4", header="id,shop_ref,datetime,lat,lng"),
        says=("several columns could be the user: shop_ref, id",),
    ),
    Shape(
        "a row number beside a user",
        "a.csv",
        csv("1,a,2012-04-03 18:00:09,39.9,116.4", header="id,user_id,datetime,lat,lng"),
        {},
        **READ,
    ),
    Shape(
        "only a session",
        "a.csv",
        csv("1,2012-04-03 18:00:09,39.9,116.4", header="session_id,datetime,lat,lng"),
        says=("can't find a column for the user", "one person would become several"),
    ),
    Shape(
        "UID and uid",
        "a.csv",
        csv("1,a,2012-04-03 18:00:09,39.9,116.4", header="UID,uid,datetime,lat,lng"),
        says=("several columns could be the user: UID, uid",),
    ),
    Shape(
        "everything is missing",
        "a.csv",
        lines("who,when,where", "a,b,c"),
        says=("the user, a column for the time and columns for the place", 'columns="user=…,time=…,lat=…,lng=…"'),
    ),
    *(
        Shape(f"names: {what}", "a.csv", lines(header, "a;2012-04-03 18:00:09;39.9;116.4"), {}, **READ)
        for what, header in {
            "German": "Kunde;Zeitpunkt;Breite;Länge",
            "French": "Identifiant utilisateur;Horodatage;Latitude;Longitude".replace("Identifiant ", "id "),
            "Spanish": "Usuario;Fecha y hora;Latitud;Longitud".replace(" y ", " "),
            "Portuguese": "Utilizador;Data e hora;Latitude;Longitude",
            "Italian": "Utente;Data ora;Latitudine;Longitudine",
            "Dutch": "Gebruiker;Tijdstip;Breedtegraad;Lengtegraad",
            "Polish": "Użytkownik;Data czas;Szerokość;Długość",
            "Turkish": "Kullanıcı;Tarih Saat;Enlem;Boylam",
            "Russian": "Пользователь;Время;Широта;Долгота",
            "Arabic": "المستخدم;الوقت;خط العرض;خط الطول",
            "Chinese": "用户;时间;纬度;经度",
            "Japanese": "ユーザーID;日時;緯度;経度",
            "Korean": "사용자 ID;시간;위도;경도",
        }.items()
    ),
    # -- times
    Shape(
        "day first",
        "a.csv",
        when("03.04.2012 18:00:09", "23.04.2012 18:00"),
        {},
        A,
        ["2012-04-03 18:00:09", "2012-04-23 18:00:00"],
        notes=("day/month/year",),
    ),
    Shape(
        "month first, AM and PM",
        "a.csv",
        when("4/3/2012 6:00:09 PM", "4/23/2012 12:05:00 AM"),
        {},
        A,
        ["2012-04-03 18:00:09", "2012-04-23 00:05:00"],
        notes=("month/day/year",),
    ),
    Shape("day or month first", "a.csv", when("03/04/2012 18:00:09"), says=BOTH),
    Shape("day or month first, told", "a.csv", when("03/04/2012 18:00:09"), {"time_format": "dmy"}, **READ),
    Shape(
        "both orders in one file",
        "a.csv",
        when("23/04/2012 18:00:09", "04/23/2012 18:00:09"),
        says=("others only in another one", *BOTH),
    ),
    Shape(
        "both orders in two files",
        "two",
        {"two/a.csv": when("23/04/2012 18:00"), "two/b.csv": when("04/23/2012 18:00")},
        says=BOTH,
    ),
    Shape(
        "a second file decides",
        "two",
        {"two/a.csv": when("03/04/2012 18:00:09"), "two/b.csv": when("23/04/2012 18:00:09")},
        {},
        A,
        ["2012-04-03 18:00:09", "2012-04-23 18:00:09"],
    ),
    Shape("years of two digits", "a.csv", when("03.04.12 18:00:09"), says=('`time_format="ymd"`', *BOTH)),
    Shape(
        "years of two digits and a day that is none", "a.csv", when("03.04.12 18:00:09", "31.04.12 18:00:09"), says=BOTH
    ),
    Shape("slashes, year first", "a.csv", when("2012/04/03 18:00:09"), {}, **READ),
    Shape(
        "names of months",
        "a.csv",
        when('"April 3, 2012 6:00:09 PM"', "3-APR-2012 18:00"),
        {},
        A,
        ["2012-04-03 18:00:00", "2012-04-03 18:00:09"],
    ),
    Shape(
        "RFC 2822",
        "a.csv",
        when('"Tue, 03 Apr 2012 20:00:09 +0200"', '"Tue, 03 Apr 2012 18:00:10 GMT"'),
        {},
        A,
        ["2012-04-03 18:00:09", "2012-04-03 18:00:10"],
    ),
    Shape("a web server's log", "a.csv", when("03/Apr/2012:20:00:09 +0200"), {}, **READ),
    Shape("JavaScript's Date", "a.csv", when("Tue Apr 03 2012 20:00:09 GMT+0200 (CEST)"), {}, **READ),
    Shape("UTC behind the time", "a.csv", when("2012-04-03 18:00:09 UTC"), {"tz": "Asia/Tokyo"}, **READ),
    Shape("CEST behind the time", "a.csv", when("2012-04-03 18:00:09 CEST"), says=('tz="Europe/Paris"', "%Z")),
    Shape(
        "CST, which is in America and in China",
        "a.csv",
        when("2012-04-03 18:00:09 CST"),
        says=("can mean several zones",),
    ),
    Shape(
        "CEST, told",
        "a.csv",
        when("2012-04-03 20:00:09 CEST"),
        {"tz": "Europe/Paris", "time_format": "%Y-%m-%d %H:%M:%S %Z"},
        **READ,
    ),
    Shape("a format", "a.csv", when("03|04|2012 at 18h00m09"), {"time_format": "%d|%m|%Y at %Hh%Mm%S"}, **READ),
    Shape(
        "a format without a day",
        "a.csv",
        when("18:00"),
        {"time_format": "%H:%M"},
        says=("codes for day, month and year",),
    ),
    Shape("14 digits", "a.csv", when("20120403180009"), {}, notes=("dates without signs",), **READ),
    Shape(
        "14 digits as numbers",
        "a.parquet",
        table(uid=A, time=[20120403180009], lat=[39.9], lng=[116.4]),
        {},
        notes=("dates without signs",),
        **READ,
    ),
    Shape("8 digits", "a.csv", when("20120403"), {}, A, ["2012-04-03 00:00:00"], notes=("dates without signs",)),
    Shape(
        "8 digits as numbers",
        "a.parquet",
        table(uid=A, time=[20120403.0], lat=[39.9], lng=[116.4]),
        {},
        A,
        ["2012-04-03 00:00:00"],
    ),
    Shape(
        "8 digits and epoch times",
        "a.csv",
        when("20120403", "1333476009"),
        says=('time_format="%Y%m%d"', 'time_unit="s"'),
    ),
    Shape("8 digits, told to be seconds", "a.csv", when("20120403"), {"time_unit": "s"}, A, ["1970-08-21 21:00:03"]),
    Shape("8 and 6 digits", "a.csv", when("20120403 180009"), {}, **READ),
    Shape("ISO basic", "a.csv", when("20120403T180009Z"), {"tz": "Asia/Tokyo"}, **READ),
    Shape(
        "date and time of day",
        "a.csv",
        csv("a,2012-04-03,18:00:09,39.9,116.4", header="uid,date,time,lat,lng"),
        {},
        **READ,
    ),
    Shape(
        "date and time of day, digits",
        "a.csv",
        csv("a,20120403,180009,39.9,116.4", header="uid,date,time,lat,lng"),
        {},
        **READ,
    ),
    Shape(
        "date and time of day, told",
        "a.csv",
        csv("a,2012-04-03,18:00:09,39.9,116.4", header="uid,d1,t1,lat,lng"),
        {"columns": "date=d1,time=t1"},
        **READ,
    ),
    Shape(
        "a date beside a whole time",
        "a.csv",
        csv("a,2012-04-01,2012-04-03 18:00:09,39.9,116.4", header="uid,date,time,lat,lng"),
        {},
        **READ,
    ),
    Shape(
        "a date beside an epoch time",
        "a.parquet",
        table(uid=A, date=["2012-04-01"], time=[1333476009], lat=[39.9], lng=[116.4]),
        {},
        **READ,
    ),
    Shape(
        "DATE and TIME",
        "a.parquet",
        table(uid=A, date=[date(2012, 4, 3)], time=[clock(18, 0, 9)], lat=[39.9], lng=[116.4]),
        {},
        **READ,
    ),
    Shape(
        "midnight and a time of day",
        "a.parquet",
        table(uid=A, date=[datetime(2012, 4, 3)], time=["18:00:09"], lat=[39.9], lng=[116.4]),
        {},
        **READ,
    ),
    Shape("serial days", "a.csv", when("41002.75010416667"), says=('time_unit="excel"', 'time_unit="s"')),
    Shape(
        "serial days as numbers",
        "a.parquet",
        table(uid=A, time=[41002.75010416667], lat=[39.9], lng=[116.4]),
        says=('time_unit="excel"',),
    ),
    Shape("serial days, told", "a.csv", when("41002.75010416667"), {"time_unit": "excel"}, **READ),
    Shape(
        "serial days, told, in a zone",
        "a.csv",
        when("41003.08343750000"),
        {"time_unit": "excel", "tz": "UTC+8"},
        **READ,
    ),
    Shape("an offset for all", "a.csv", when("2012-04-03 14:30:09"), {"tz": "-03:30"}, **READ),
    Shape(
        "GMT+8, which has two meanings",
        "a.csv",
        when("2012-04-03 14:30:09"),
        {"tz": "GMT+8"},
        says=("two meanings", "+02:00"),
    ),
    Shape("Chinese dates", "a.csv", when("2012年4月3日 18时00分09秒"), {}, **READ),
    # -- texts
    Shape(
        "German spreadsheet, UTF-8 with its mark",
        "a.csv",
        ("\ufeff" + GERMAN).encode(),
        {},
        notes=("comma", "day/month/year"),
        **GERMAN_READ,
    ),
    Shape(
        "German spreadsheet, Windows-1252", "a.csv", GERMAN.encode("cp1252"), {}, notes=("Windows-1252",), **GERMAN_READ
    ),
    Shape("German spreadsheet, UTF-16", "a.csv", GERMAN.encode("utf-16"), {}, **GERMAN_READ),
    Shape(
        "German spreadsheet, CRLF and sep=",
        "a.csv",
        ("sep=;\r\n" + GERMAN.replace("\n", "\r\n")).encode(),
        {},
        **GERMAN_READ,
    ),
    Shape(
        "an encoding that is none",
        "a.csv",
        GERMAN.encode("cp1252"),
        {"encoding": "utf-9"},
        says=("encoding is not known", "cp1252"),
    ),
    Shape(
        "an encoding that does not fit",
        "a.csv",
        GERMAN.encode("cp1252"),
        {"encoding": "utf-16"},
        says=("not in the encoding",),
    ),
    Shape("tabs", "a.tsv", PLAIN.replace(",", "\t"), {}, **READ),
    Shape("pipes", "a.txt", PLAIN.replace(",", "|"), {}, **READ),
    Shape("line ends of old Macs", "a.csv", PLAIN.replace("\n", "\r"), {}, **READ),
    Shape("quoted numbers", "a.csv", csv('"a","2012-04-03 18:00:09","39.9","116.4"'), {}, **READ),
    Shape("blanks that do not break", "a.csv", csv("a,2012-04-03\u00a018:00:09,\u200939.9,116.4\u202f"), {}, **READ),
    Shape("a minus that is none", "a.csv", csv("a,2012-04-03 18:00:09,−39.9,116.4"), {}, A, APRIL, [(-39.9, 116.4)]),
    Shape("hemispheres", "a.csv", csv("a,2012-04-03 18:00:09,39.9N,116.4 W"), {}, A, APRIL, [(39.9, -116.4)]),
    Shape(
        "degrees, minutes, seconds",
        "a.csv",
        csv("""a,2012-04-03 18:00:09,"39°54'00""S",116°24'E"""),
        {},
        A,
        APRIL,
        [(-39.9, 116.4)],
    ),
    Shape("empty lines and comments first", "a.csv", "\n# made by hand\n\n" + PLAIN, {}, **READ),
    Shape("a delimiter behind each row", "a.csv", PLAIN.replace("116.4\n", "116.4,\n"), {}, **READ),
    Shape("a delimiter behind each line", "a.csv", PLAIN.replace("\n", ",\n"), {}, **READ),
    # -- containers
    Shape("zip", "a.zip", packed({"x.csv": PLAIN, "README.txt": "read me", "__MACOSX/x.csv": "z"}), {}, **READ),
    Shape(
        "zip of several tables",
        "a.zip",
        packed({"x/a.csv": PLAIN, "y/a.csv": PLAIN.replace("a,", "b,")}),
        {},
        ["a", "b"],
    ),
    Shape(
        "zip of texts, users by file",
        "a.zip",
        packed({"a.txt": "39.9,116.4,1333476009\n"}),
        {"columns": "user=@file,lat=1,lng=2,time=3"},
        **READ,
    ),
    Shape(
        "a number of a column beside names that stand twice",
        "a.csv",
        csv("1,2,a,2012-04-03 18:00:09,39.9,116.4", header="n,n,who,when,lat,lng"),
        {"columns": "user=3,time=4"},
        **READ,
    ),
    Shape(
        "zip of GeoLife",
        "Geolife Trajectories 1.3.zip",
        packed(
            {
                f"Data/{user}/Trajectory/{day}.plt": PLT.replace("02:53", f"0{day}:53")
                for user in ("000", "001")
                for day in (1, 2)
            }
        ),
        {"columns": "user=@folder"},
        ["000", "001"],
    ),
    Shape(
        "GeoLife, written anew",
        "Data",
        {f"Data/000/Trajectory/{day}.plt": PLT.replace("02:53", f"0{day}:53").replace("\n", "\r") for day in (1, 2)},
        {"columns": "user=@folder"},
        ["000"],
    ),
    Shape("zip without data", "a.zip", packed({"x.docx": "x"}), says=("no data file in it",)),
    Shape("no zip at all", "a.zip", b"PK no", says=("not a whole .zip",)),
    Shape("zip with names that lead outside", "a.zip", packed({"../../a.csv": PLAIN}), {}, **READ),
    Shape("xz", "a.csv.xz", lzma.compress(PLAIN.encode()), {}, **READ),
    Shape("xz, cut off", "a.csv.xz", lzma.compress(PLAIN.encode())[:-9], says=("copy it again",)),
    Shape("xz bomb", "a.csv.xz", lzma.compress(bytes(80 << 20), preset=0), says=("500 times",)),
    Shape("bz2", "a.csv.bz2", bz2.compress(PLAIN.encode()), {}, **READ),
    Shape(
        "xlsx with dates",
        "a.xlsx",
        sheet(["user", "time", "lat", "lon"], ["a", datetime(2012, 4, 3, 18, 0, 9), 39.9, 116.4]),
        {},
        **READ,
    ),
    Shape(
        "xlsx with date and time of day",
        "a.xlsx",
        sheet(["user", "Datum", "Uhrzeit", "lat", "lon"], ["a", date(2012, 4, 3), clock(18, 0, 9), 39.9, 116.4]),
        {},
        **READ,
    ),
    Shape(
        "xlsx with dates stored as numbers",
        "a.xlsx",
        sheet(["user", "time", "lat", "lon"], ["a", 41002.75010416667, 39.9, 116.4]),
        says=('time_unit="excel"',),
    ),
    Shape("no xlsx at all", "a.xlsx", PLAIN, says=("save it as CSV",)),
    Shape(
        "Feather",
        "a.feather",
        table("file", uid=A, time=[datetime(2012, 4, 3, 18, 0, 9)], lat=[39.9], lng=[116.4]),
        {},
        **READ,
    ),
    Shape(
        "Arrow stream",
        "a.arrow",
        table("stream", uid=A, time=[datetime(2012, 4, 3, 18, 0, 9)], lat=[39.9], lng=[116.4]),
        {},
        **READ,
    ),
    Shape("Arrow, cut off", "a.arrow", table("file", uid=A)[:-20], says=("not a whole Arrow file",)),
    Shape(
        "JSON lines",
        "a.jsonl",
        '{"uid": "a", "time": 1333476009, "lat": 39.90, "lng": 116.4, "more": [1]}\n\n',
        {},
        **READ,
    ),
    Shape("JSON, broken", "a.json", '[{"uid": "a"', says=("not a list of records",)),
]
