package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestAttendanceRoutes(t *testing.T) {
	s := newSite(t)
	const marks = `{"marks":[{"user":"a","day":"2026-02-01"},{"user":"a","at":"2026-02-02T23:59:59Z"},{"user":"a"},{"user":"b","kind":"staff","day":"2026-02-02"}]}`
	s.json(200, `{"marked":4,"already":0}`, "writer", "POST", "/v1/attendance/marks", marks)
	s.json(200, `{"marked":0,"already":4}`, "writer", "POST", "/v1/attendance/marks", marks)
	const old = `{"marks":[{"user":"a","day":"2017-09-30"},{"user":"a","day":"2017-10-01"}]}`
	s.json(200, `{"marked":2,"already":0}`, "admin", "POST", "/v1/attendance/marks?import=1", old)

	s.json(200, `{"from":"2026-01-07","to":"2026-02-03","any":true,"count":3,"days":["2026-02-01","2026-02-02","2026-02-03"],"streak":{"current":3,"at_risk":false,"longest":3}}`,
		"reader", "GET", "/v1/attendance/users/a", "")
	s.json(200, `{"months":["2017-10","2017-09"],"any":true,"count":2,"days":["2017-09-30","2017-10-01"],"streak":{"current":3,"at_risk":false,"longest":3}}`,
		"reader", "GET", "/v1/attendance/users/a?months=2017-10,2017-09", "")
	s.json(200, `{"from":"2026-02-03","to":"2026-02-03","any":false,"count":0,"days":[],"streak":{"current":1,"at_risk":true,"longest":1}}`,
		"reader", "GET", "/v1/attendance/users/b?from=2026-02-03&to=2026-02-03&kind=staff", "")
	s.json(200, `{"from":"2026-02-01","to":"2026-02-02","items":["a"],"total":1}`, "reader", "GET", "/v1/attendance/active?from=2026-02-01&to=2026-02-02&match=every", "")
	s.json(200, `{"from":"2026-01-07","to":"2026-02-03","items":["b"],"total":1}`, "reader", "GET", "/v1/attendance/active?kind=staff", "")
	s.json(200, `{"from":"2026-01-31","to":"2026-02-03","items":[
		{"day":"2026-01-31","dau":0,"wau":0,"mau":0,"dau_mau":null,"dau_wau":null,"wau_mau":null},
		{"day":"2026-02-01","dau":1,"wau":1,"mau":1,"dau_mau":1,"dau_wau":1,"wau_mau":1},
		{"day":"2026-02-02","dau":2,"wau":2,"mau":2,"dau_mau":1,"dau_wau":1,"wau_mau":1},
		{"day":"2026-02-03","dau":1,"wau":2,"mau":2,"dau_mau":0.5,"dau_wau":0.5,"wau_mau":1}],"wau_days":7,"mau_days":28}`,
		"reader", "GET", "/v1/attendance/series?from=2026-01-31", "")
	s.json(200, `{"from":"2026-02-03","to":"2026-02-03","items":[{"day":"2026-02-03","dau":1,"wau":2,"mau":2,"dau_mau":0.5,"dau_wau":0.5,"wau_mau":1}],"wau_days":7,"mau_span":"month"}`,
		"reader", "GET", "/v1/attendance/series?from=2026-02-03&mau=month", "")
	s.json(200, `{"from":"2026-02-01","to":"2026-02-03","users_by_active_days":{"1":1,"3":1},"total":2}`, "reader", "GET", "/v1/attendance/stickiness?from=2026-02-01", "")
	s.json(200, `{"from":"2026-01-07","to":"2026-02-03","items":[{"user":"a","longest":3,"current":3,"at_risk":false},{"user":"b","longest":1,"current":1,"at_risk":true}]}`,
		"reader", "GET", "/v1/attendance/streaks", "")
	s.json(200, `{"from":"2026-02-02","to":"2026-02-03","period":"day","cohort":"first","measure":"on","cohorts":[
		{"start":"2026-02-02","size":1,"retained":[1,0],"complete":[true,false],"begun":[true,true]},
		{"start":"2026-02-03","size":0,"retained":[0],"complete":[false],"begun":[true]}],"mean":[1,null]}`,
		"reader", "GET", "/v1/attendance/retention?period=day&from=2026-02-02", "")
	s.json(200, `{"from":"2026-02-02","to":"2026-02-03","period":"day","items":[
		{"start":"2026-02-02","new":1,"returning":1,"resurrecting":0,"dormant":0,"complete":true},
		{"start":"2026-02-03","new":0,"returning":1,"resurrecting":0,"dormant":1,"complete":false}]}`,
		"reader", "GET", "/v1/attendance/lifecycle?period=day&from=2026-02-02", "")

	s.json(200, `{"unmarked":1}`, "writer", "DELETE", "/v1/attendance/marks", `{"marks":[{"user":"a"},{"user":"zoe"}]}`)
	s.json(200, `{"unmarked":2}`, "admin", "DELETE", "/v1/attendance/marks?import=1", old)
}

func TestFiguresSayTheirRangeAndWhatIsToCome(t *testing.T) {
	s := newSite(t)
	s.json(200, `{"from":"2026-02-03","to":"2026-02-04","items":[
		{"day":"2026-02-03","dau":0,"wau":0,"mau":0,"dau_mau":null,"dau_wau":null,"wau_mau":null},
		{"day":"2026-02-04","dau":0,"wau":0,"mau":0,"dau_mau":null,"dau_wau":null,"wau_mau":null,"to_come":true}],"wau_days":7,"mau_days":28}`,
		"reader", "GET", "/v1/attendance/series?from=2026-02-03&to=2026-02-04", "")
	s.json(200, `{"from":"2026-02-03","to":"2026-02-04","period":"day","items":[
		{"start":"2026-02-03","new":0,"returning":0,"resurrecting":0,"dormant":0,"complete":false},
		{"start":"2026-02-04","new":0,"returning":0,"resurrecting":0,"dormant":0,"complete":false,"to_come":true}]}`,
		"reader", "GET", "/v1/attendance/lifecycle?period=day&from=2026-02-03&to=2026-02-04", "")
	s.json(200, `{"from":"2026-02-03","to":"2026-02-04","period":"day","cohort":"first","measure":"on","cohorts":[
		{"start":"2026-02-03","size":0,"retained":[0,0],"complete":[false,false],"begun":[true,false]},
		{"start":"2026-02-04","size":0,"retained":[0],"complete":[false],"begun":[false]}],"mean":[null,null]}`,
		"reader", "GET", "/v1/attendance/retention?period=day&from=2026-02-03&to=2026-02-04", "")
}

func TestCohortsAreThoseOfTwelvePeriodsUnlessSaid(t *testing.T) {
	s := newSite(t)
	for period, from := range map[string]string{"day": "2026-01-23", "week": "2025-11-17", "month": "2025-03-01"} {
		for _, figure := range []string{"retention", "lifecycle"} {
			var got struct {
				From           string
				Cohorts, Items []any
			}
			require.NoError(t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", "/v1/attendance/"+figure+"?period="+period, "")), &got))
			require.Len(t, append(got.Cohorts, got.Items...), 12, "%s %s", figure, period)
			require.Equal(t, from, got.From)
		}
	}
}

func TestMonthsGivenButEmptyAreRefused(t *testing.T) {
	newSite(t).refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/attendance/users/a?months=", "")
}
