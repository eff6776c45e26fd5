"""Gives messages to the receiver that the guide shows, as they came and changed. The
file that is named has a list of {secret, headers, body}."""
import base64, json, sys

from receiver import verify

messages = json.load(open(sys.argv[1]))
for m in messages:
    secret, headers, body = m["secret"], m["headers"], m["body"].encode()
    assert verify(secret, headers, body)
    assert not verify(secret, headers, body.replace(b'"type"', b'"kind"'))
    assert not verify(secret, {**headers, "webhook-id": "another"}, body)
    assert not verify(secret, {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 3600)}, body)
    assert not verify(secret, {**headers, "webhook-signature": "v1,é v1a,x"}, body)
    assert not verify("whsec_" + base64.b64encode(bytes(32)).decode(), headers, body)
print(len(messages))
