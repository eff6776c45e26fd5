package httpapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// bodyExamples are bodies of requests, by operation.
var bodyExamples = map[string]string{
	"login":          `{"user":"alice","name":"Alice","app":"shop","device":"ios","device_id":"3f2a","ip":"203.0.113.7","attrs":{"tier":"gold"}}`,
	"query-sessions": `{"users":["alice","bob"],"app":"shop","seen_within":"5m","limit":20}`,
	"update-session": `{"name":"Alice","attrs":{"tier":"silver"}}`,
	"kick":           `{"user":"alice","reason":"password changed"}`,
	"touch":          `{}`,
	"verify-by-id":   `{"session":"01J1ZK5V7Q8R9S0T1V2W3X4Y5Z"}`,
	"beat":           `{"users":["alice","bob"]}`,
	"status":         `{"users":["alice","bob"]}`,
	"clear-online":   `{"older_than":"90d"}`,
	"put-user":       `{"name":"Alice","kind":"staff"}`,
	"put-ban":        `{"duration":"1h","reason":"spam"}`,
	"put-friends":    `{"friends":[{"user":"bob"},{"user":"carol","since":"2026-01-01T00:00:00.000Z"}]}`,
	"mark":           `{"marks":[{"user":"alice","day":"2026-02-03"}]}`,
	"unmark":         `{"marks":[{"user":"alice","day":"2026-02-03"}]}`,
	"visit":          `{"name":"home","visitors":["v1","v2"]}`,
	"create-key":     `{"name":"gateway","role":"writer","ttl":"90d"}`,
	"create-webhook": `{"url":"https://example.com/hooks/rollcall","types":["session.started","session.ended"]}`,
	"update-webhook": `{"enabled":false}`,
	"replay-webhook": `{"from":"2026-02-03T00:00:00.000Z","to":"2026-02-03T12:00:00.000Z"}`,
}

// valueExamples are values in answers, by the name of the property.
var valueExamples = map[string]any{
	"id": "01J1ZK5V7Q8R9S0T1V2W3X4Y5Z", "sessions": "01J1ZK5V7Q8R9S0T1V2W3X4Y5Z",
	"user": "alice", "name": "Alice", "kind": "user", "app": "shop", "device": "ios", "ip": "203.0.113.7",
	"user_agent": "Shop/1.2", "attrs": "gold", "cause": "replaced", "role": "writer", "items": "alice",
	"action": "user.erased", "actor": "key:0123456789abcdef", "hash": strings.Repeat("0f", 32), "token": "rct_…", "key": "rck_…", "beat_key": strings.Repeat("0f", 32), "runner": "server-1", "version": "1.0.0",
	"url": "https://example.com/hooks/rollcall", "secret": "whsec_…", "message": "000000010000000000000007", "result": "delivered",
	"timezone": "UTC", "engine": "local", "period": "week", "cohort": "first", "measure": "on", "by": "day", "step": "1m", "status": "ok",
}

// addExamples adds an example of each body of an operation.
func (d documenter) addExamples(op *huma.Operation) {
	if op.RequestBody != nil {
		if text, ok := bodyExamples[op.OperationID]; ok {
			op.RequestBody.Content[jsonType].Example = json.RawMessage(text)
		}
	}
	for _, r := range op.Responses {
		for kind, content := range r.Content {
			if kind == jsonType && content.Example == nil && op.OperationID != "openapi" && op.OperationID != "openapi-3-0" {
				content.Example = d.example("", content.Schema)
			}
		}
	}
}

// example makes an answer of what is always in it.
func (d documenter) example(name string, schema *huma.Schema) any {
	if ref, ok := strings.CutPrefix(schema.Ref, schemaPrefix); ok {
		schema = d.schemas[ref]
	}
	switch {
	case len(schema.OneOf) > 0:
		return d.example(name, schema.OneOf[0])
	case schema.Type == huma.TypeArray:
		return []any{d.example(name, schema.Items)}
	case schema.Type == huma.TypeObject:
		return d.exampleObject(name, schema)
	case len(schema.Examples) > 0:
		return schema.Examples[0]
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	}
	switch schema.Type {
	case huma.TypeInteger:
		return 1
	case huma.TypeNumber:
		return 0.5
	case huma.TypeBoolean:
		return false
	}
	if value, ok := valueExamples[name]; ok {
		return value
	}
	return "text"
}

func (d documenter) exampleObject(name string, schema *huma.Schema) any {
	out := map[string]any{}
	if values, ok := schema.AdditionalProperties.(*huma.Schema); ok {
		key := "1"
		switch name {
		case "attrs":
			key = "tier"
		case "ends":
			key = string(rollcall.CauseExpired)
		}
		out[key] = d.example(name, values)
	}
	for property, of := range schema.Properties {
		if slices.Contains(schema.Required, property) {
			out[property] = d.example(property, of)
		}
	}
	return out
}
