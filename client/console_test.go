package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestALinkToTheConsoleIsMade(t *testing.T) {
	s := newSide(t, rollcall.NewManualClock(noon), true)
	link, err := clientOf(t, s).CreateConsoleLink(t.Context(), rollcall.RoleReader)
	require.NoError(t, err)
	require.Equal(t, rollcall.RoleReader, link.Role)
	require.Equal(t, noon.Add(rollcall.ConsoleLinkTTL), link.ExpiresAt)
	_, text, ok := strings.Cut(link.Path, "#link=")
	require.True(t, ok)
	_, session, err := s.roll.SignIn(t.Context(), rollcall.ConsoleSignIn{Link: text})
	require.NoError(t, err)
	require.Equal(t, keyName, session.Name)
	own, err := clientOf(t, s).CreateConsoleLink(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, rollcall.RoleAdmin, own.Role)
	_, err = clientOf(t, s).CreateConsoleLink(t.Context(), "owner")
	require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err))
}
