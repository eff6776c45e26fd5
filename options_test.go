package rollcall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAZoneIsRefusedWhoseNameIsNotThatOfItsRules(t *testing.T) {
	for _, zone := range []*time.Location{
		time.FixedZone("Local", 9*3600), time.Local, time.FixedZone("", 3600), time.FixedZone("CET", 3600),
		time.FixedZone("UTC", 3600), time.FixedZone("Europe/Berlin", 3600), time.FixedZone("UTC+9", 9*3600),
	} {
		require.Equal(t, CodeInvalidArgument, CodeOf(checkZone(zone)), "%s", zone)
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		require.NoError(t, checkZone(zone))
	}
}
