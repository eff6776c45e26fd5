"""Sends one UDP beat of a session: sender.py HOST PORT SESSION_ID BEAT_KEY

SESSION_ID and BEAT_KEY are what a login answers with.
"""
import base64
import hashlib
import hmac
import socket
import struct
import sys
import time

# The text of a session id is base 32 in another alphabet.
OURS = "0123456789abcdefghjkmnpqrstvwxyz"
RFC4648 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def session_beat(session_id, beat_key, seconds, counter):
    raw = base64.b32decode(session_id.translate(str.maketrans(OURS, RFC4648)) + "======")
    body = b"\x01" + raw + struct.pack(">II", seconds, counter)
    return body + hmac.digest(bytes.fromhex(beat_key), body, hashlib.sha256)[:16]


if __name__ == "__main__":
    host, port, session_id, beat_key = sys.argv[1:]
    now = int(time.time())
    # Seconds rise too, so they are a good counter for a beat every few seconds.
    datagram = session_beat(session_id, beat_key, now, now)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(datagram, (host, int(port)))
