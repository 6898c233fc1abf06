"""Names: the words that people use for the columns of users, times and places, in several languages.

Names are compared without case, accents, spaces and signs: `User-ID`, `user_id` and `userId` are one name.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CLOCKS", "DATES", "LATITUDES", "LONGITUDES", "TIMES", "is_trip", "plain_name", "user_of"]


@lru_cache(maxsize=20_000)
def plain_name(name: str) -> str:
    """Return a column's name without case, accents, spaces and signs.

    >>> plain_name(" Benutzer-ID"), plain_name("Länge"), plain_name("# Timestamp"), plain_name("时间")
    ('benutzerid', 'lange', 'timestamp', '时间')
    """
    apart = unicodedata.normalize("NFKD", name.casefold().replace("ß", "ss").replace("ı", "i").replace("ł", "l"))
    # Marks of Arabic, Hindi or Korean belong to the word; those of Latin and Greek letters are accents.
    kept = (one for one in apart if not 0x300 <= ord(one) < 0x370)
    return unicodedata.normalize(
        "NFC", "".join(one for one in kept if one.isalnum() or unicodedata.category(one)[0] == "M")
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(map(plain_name, text.split()))


# Of a user: taken even beside a column called `id`, which is then a row's number.
_USER = _words("""
    user_id userid user username user_hash userhash user_uid user_no user_number user_code user_ref user_pseudo_id
    msisdn msisdn_hash hashed_msisdn imsi imsi_hash subscriber subscriber_id subscriber_hash
    individual_local_identifier nutzer nutzer_id nutzerid benutzer benutzer_id teilnehmer teilnehmer_id utilisateur
    id_utilisateur utilisateur_id usager id_usager abonne id_abonne usuario id_usuario usuario_id abonado id_abonado
    utilizador id_utilizador assinante id_assinante utente id_utente abbonato id_abbonato gebruiker gebruiker_id
    gebruikers_id abonnee uzytkownik id_uzytkownika uzytkownik_id abonent abonent_id kullanici kullanici_id
    kullanici_no abone abone_id abone_no пользователь id_пользователя пользователь_id абонент id_абонента абонент_id
    المستخدم معرف_المستخدم مستخدم المشترك معرف_المشترك 用户 用户id 用户编号 用户号
    用户名 使用者 用戶 ユーザー ユーザーid ユーザid ユーザ 利用者 利用者id
    사용자 사용자id 사용자아이디 이용자 가입자
""")
# Of a person in another part: taken when there is no `id` beside it.
_PERSON = _words("""
    subscriber_ref customer customer_id customer_ref customer_no customer_number cust_id client client_id client_ref
    person person_id personid agent agent_id individual individual_id participant participant_id respondent_id
    passenger passenger_id passenger_ref rider_id traveller_id traveler_id caller caller_id calling_number
    calling_party account account_id account_ref member_id employee_id patient_id student_id kunde kunden_id
    kundennummer kunden_nr person_nr id_client client_numero cliente id_cliente cliente_id persona id_persona
    persona_id pessoa id_pessoa klant klant_id klantnummer klient klient_id id_klienta musteri musteri_id musteri_no
    клиент id_клиента العميل 客户 客户id 手机号 手机号码 顧客id 고객 고객id 고객번호
""")
_UID = _words("uid")
# Of a thing that one person carries or drives: taken when there is no name of a person.
_THING = _words("""
    device device_id deviceid device_hash imei imei_hash phone phone_id phone_number phone_hash telephone mobile
    mobile_number maid idfa gaid ad_id advertising_id advertiser_id card card_id card_no card_number card_hash
    cardid smartcard_id oyster_id vehicle vehicle_id vehicleid vehicle_ref taxi taxi_id car_id bus_id truck_id
    medallion plate plate_number licence_plate license_plate mmsi vessel_id ship_id driver driver_id collar_id
    tracker_id tag_id animal_id geraet geraete_id geraet_id gerat_id karte kartennummer fahrzeug fahrzeug_id fahrer
    fahrer_id telefonnummer appareil id_appareil vehicule id_vehicule telephone numero_telephone id_carte
    dispositivo id_dispositivo vehiculo id_vehiculo telefono tarjeta id_tarjeta conductor veiculo id_veiculo
    telefone cartao id_cartao veicolo id_veicolo voertuig voertuig_id urzadzenie pojazd cihaz cihaz_id arac
    устройство телефон автомобиль 车牌 车牌号 车牌号码 设备 设备id 设备号 车辆id 卡号 端末id 車両id 기기id 차량번호
""")
# A row number as often as a person.
_WEAK = _words(
    "id uuid guid identifier ident _id hash key name label nom nombre nome naam nazwa bezeichnung 编号 번호 識別子"
)
_ROW = _words("""
    index row row_id rowid rownum row_number line line_number no nr unnamed_0 objectid fid ogc_fid gid serial seq
    sequence
""")
# Of a trip, a session or a thing that changes hands: one person would become several, or several one.
_TRIP = _words("""
    traj traj_id trajectory_id trajectory trajid tid track_id trackid track trip trip_id tripid trip_uuid session
    session_id sessionid ride_id rideid journey_id journey tour_id leg_id segment_id seg_id route_uuid visit_id
    stay_id call_id order_id orderid 订单id 订单号 bike_id bikeid bike scooter_id bike_number fahrrad_id fahrt_id
    trajet_id id_trajet id_viaje viaje_id id_viagem viagem_id rit_id
""")
# Ends of names that mean "which one of them".
_ENDS = ("id", "ref", "hash", "number", "num", "key", "uuid", "pseudonym", "token", "identifier")
# What such names are of, where it is plainly no person.
_OTHERS = _words("""
    cell location tower antenna site bts lac ci cid enb ecgi cgi sector zone area region country city district state
    municipality commune province county grid tile square geohash h3 event record message msg packet obs observation
    sample point venue place poi category venue_category vendor provider operator mcc mnc network service source
    sensor_type route line stop station direction block shape agency depot parent study type kind status class group
    cluster color colour model project file batch partition version import job hour week month year house tz
    zone_time deployment imo call_sign track_point activity purpose mode plan version ratecode rate payment
    pulocation dolocation start_station end_station from_station to_station sequence taxon
    individual_taxon_canonical_name tag_study bearing
""")

_RIVALS = _words("id uuid guid identifier ident _id key")
_KNOWN = _USER | _PERSON | _UID | _THING | _WEAK | _ROW | _TRIP

TIMES = _words("""
    zeit zeitpunkt zeitstempel datum_uhrzeit datumuhrzeit horodatage date_heure dateheure horodate fecha_hora
    fechahora marca_de_tiempo data_hora datahora data_e_hora data_ora dataora datum_tijd datumtijd tijdstip
    tijdstempel data_czas znacznik_czasu data_godzina zaman tarih_saat zaman_damgasi датавремя дата_время время
    дата_и_время الوقت التاريخ_والوقت 时间 时间戳 日期时间 時間 日時 時刻 タイムスタンプ 시간 일시 시각
""")
CLOCKS = _words("""
    hour_minute call_time trip_time fix_time uhrzeit heure hora ora tijd czas godzina saat час local_time time_of_day
    tod
""")
DATES = _words("""
    date datum fecha data tarih дата التاريخ 日期 日付 날짜 day_date call_date event_date trip_date fix_date
    start_date
""")
LATITUDES = _words("""
    breite breitengrad geo_breite geographische_breite latitud latitudine breedtegraad szerokosc
    szerokosc_geograficzna enlem широта خط_العرض 纬度 緯度 위도 geo_lat gps_lat gps_latitude location_lat position_lat
    point_lat lat_deg latitude_deg latitude_degrees latitude_wgs84 lat_wgs84 wgs84_lat y_lat
""")
LONGITUDES = _words("""
    lange langengrad laenge laengengrad geo_laenge geo_lange geographische_lange longitud longitudine lengtegraad
    dlugosc dlugosc_geograficzna boylam долгота خط_الطول 经度 經度 経度 경도 geo_lon geo_lng geo_long gps_lon gps_lng
    gps_longitude location_long location_lng location_lon position_long position_lon position_lng point_lon
    point_lng lon_deg lng_deg longitude_deg longitude_degrees longitude_wgs84 lon_wgs84 wgs84_lon x_lon
""")


def user_of(names: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the column of the user, or None; and all columns that could be it, if that is not plain.

    A name that may be a row's number (`id`) or a trip's is never taken where another column could be the person.

    >>> user_of(["id", "user_id", "time"])
    ('user_id', [])
    >>> user_of(["customer", "shop_ref"])
    ('customer', [])
    >>> user_of(["id", "shop_ref", "time"])
    (None, ['shop_ref', 'id'])
    """
    plain = {name: plain_name(name) for name in names}

    def among(words: frozenset[str]) -> list[str]:
        return [name for name in names if plain[name] in words]

    users, uid, people, things, weak, trips = map(among, (_USER, _UID, _PERSON, _THING, _WEAK, _TRIP))
    rest = (_is_key(name) and plain[name] not in _KNOWN for name in names)
    unknown = [name for name, key in zip(names, rest, strict=True) if key]
    if users:
        several = [*users, *uid]
    elif uid:
        several = [*uid, *people, *things, *unknown]
    elif people:
        several = [*people, *among(_RIVALS)]
    elif things:
        several = [*things, *unknown, *among(_RIVALS)]
    else:
        several = [*weak, *unknown, *trips]
        if several != weak[:1]:
            return None, [*(name for name in names if name in {*unknown, *trips}), *weak]  # the likely ones first
    several = [name for name in names if name in several]
    return (several[0], []) if len(several) == 1 else (None, several)


def is_trip(name: str) -> bool:
    """Return whether a name is that of a trip or a session, or of a thing that many people use.

    >>> is_trip("traj_id"), is_trip("user_id")
    (True, False)
    """
    return plain_name(name) in _TRIP


def _is_key(name: str) -> bool:
    """Return whether a name ends or begins like that of a key, and not of one for a place, an event or the like."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = [plain_name(word) for word in re.split(r"[\W_]+", apart) if word]
    if len(words) > 1 and words[-1] in _ENDS:
        words = words[:-1]
    elif len(words) > 1 and words[0] == "id":
        words = words[1:]
    else:
        return False
    return not ({"".join(words), words[-1], words[0]} & _OTHERS)
