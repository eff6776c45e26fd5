package httpapi

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// problemCodes are the codes of all errors.
var problemCodes = []rollcall.Code{
	rollcall.CodeInvalidArgument, rollcall.CodeUnauthenticated, rollcall.CodeSessionEnded, rollcall.CodeForbidden, rollcall.CodeUserBanned,
	rollcall.CodeNotFound, rollcall.CodeConflict, rollcall.CodeSessionLimit, rollcall.CodeTooLarge, rollcall.CodeRateLimited,
	rollcall.CodeUnavailable, rollcall.CodeStorageFull, rollcall.CodeInternal,
}

// textLimit bounds a text that stands under a name wherever it stands. Lengths are
// of bytes, and no text has more characters than bytes.
type textLimit struct {
	min, max int
	pattern  string
	values   []any
}

func anyOf[T ~string](values ...T) []any {
	return each(values, func(v T) any { return string(v) })
}

var (
	userLimit = textLimit{min: 1, max: rollcall.MaxUserLen}
	idLimit   = textLimit{pattern: "^[0-9A-Za-z]{26}$"}
)

// textLimits are by the name of a property or parameter, which means the same
// everywhere.
var textLimits = map[string]textLimit{
	"user": userLimit, "users": userLimit, "friend": userLimit,
	"visitors": {min: 1, max: rollcall.MaxVisitorLen},
	"kind":     {max: rollcall.MaxKindLen, pattern: "^[a-z0-9_-]*$"},
	"name":     {max: rollcall.MaxNameLen},
	"app":      {max: rollcall.MaxAppLen}, "device": {max: rollcall.MaxDeviceLen}, "device_id": {max: rollcall.MaxDeviceIDLen},
	"user_agent": {max: rollcall.MaxUserAgentLen},
	"attrs":      {max: rollcall.MaxAttrValueLen},
	"reason":     {max: rollcall.MaxReasonLen}, "actor": {max: rollcall.MaxActorLen},
	"url": {min: 1, max: rollcall.MaxWebhookURL}, "description": {max: rollcall.MaxWebhookDescription},
	"session": idLimit, "except": idLimit,
	"cause":   {values: anyOf(rollcall.Causes()...)},
	"role":    {values: anyOf(rollcall.RoleReader, rollcall.RoleWriter, rollcall.RoleAdmin)},
	"period":  {values: anyOf(rollcall.PeriodDay, rollcall.PeriodWeek, rollcall.PeriodMonth)},
	"cohort":  {values: anyOf(rollcall.CohortFirst, rollcall.CohortRecurring)},
	"measure": {values: anyOf(rollcall.MeasureOn, rollcall.MeasureOnOrAfter)},
	"by":      {values: anyOf(rollcall.VisitsByHour, rollcall.VisitsByDay)},
	"engine":  {values: []any{"local", "redis"}},
	"status":  {values: []any{"ok", "ready"}},
}

// limitProperties adds the limits of a schema's properties.
func limitProperties(schema *huma.Schema, asked bool) {
	for name, property := range schema.Properties {
		limitSchema(name, property, asked)
		limitProperties(property, asked)
		if name == "attrs" {
			extend(property, "maxProperties", rollcall.MaxAttrs)
		}
	}
}

// limitSchema adds the limits of what stands under a name. The checks that huma
// makes read the fields of a schema, and not what is added here.
func limitSchema(name string, schema *huma.Schema, asked bool) {
	limit, ok := textLimits[name]
	if values, isMap := schema.AdditionalProperties.(*huma.Schema); isMap && name == "attrs" {
		schema = values
	}
	if schema.Items != nil {
		schema = schema.Items
		if name == "sessions" || name == "tokens" {
			return
		}
	}
	if !ok || schema.Type != huma.TypeString || schema.Format != "" {
		return
	}
	if limit.min > 0 && asked {
		extend(schema, "minLength", limit.min)
	}
	if limit.max > 0 {
		extend(schema, "maxLength", limit.max)
	}
	if limit.pattern != "" {
		extend(schema, "pattern", limit.pattern)
	}
	if limit.values != nil && len(schema.Enum) == 0 {
		extend(schema, "enum", limit.values)
	}
}

func extend(schema *huma.Schema, key string, value any) {
	if schema.Extensions == nil {
		schema.Extensions = map[string]any{}
	}
	schema.Extensions[key] = value
}
