package local

import "github.com/rollcall/rollcall"

// sameSecret refuses another secret than the one that the data was made with:
// bans, cursors and retried logins hold under one secret only. An id of "" is a
// secret for this process alone, which is not compared and not noted.
func (e *Engine) sameSecret(id string) error {
	if id == "" {
		return nil
	}
	stands, ok, err := e.store.get(metaKey(metaSecret))
	switch {
	case err != nil:
		return err
	case !ok:
		if err := e.store.put(metaKey(metaSecret), []byte(id)); err != nil {
			return err
		}
		return e.store.syncAll()
	case string(stands) != id:
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "secret",
			Detail: "is another one than that which the data was made with: put the right one back",
		}
	}
	return nil
}
