// Command udp sends one UDP beat that names users, as a game gateway would. It
// needs the id and the beat key of an API key: rollcall key create --role writer.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	if err := send(); err != nil {
		fmt.Fprintln(os.Stderr, "udp:", err)
		os.Exit(1)
	}
}

func send() error {
	if len(os.Args) < 5 {
		return errors.New("usage: udp ADDRESS KEY_ID BEAT_KEY USERS")
	}
	id, err := hex.DecodeString(os.Args[2])
	if err != nil || len(id) != 8 {
		return errors.New("KEY_ID must be 16 hexadecimal digits")
	}
	key, err := hex.DecodeString(os.Args[3])
	if err != nil {
		return err
	}
	now, users := time.Now(), os.Args[4:]

	b := append([]byte{2}, id...)
	b = binary.BigEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.BigEndian.AppendUint64(b, uint64(now.UnixNano())) // rises, also across restarts
	b = binary.BigEndian.AppendUint16(b, uint16(len(users)))
	for _, user := range users {
		b = append(append(b, byte(len(user))), user...)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	b = append(b, mac.Sum(nil)[:16]...) // 1,400 bytes at most

	conn, err := (&net.Dialer{}).DialContext(context.Background(), "udp", os.Args[1])
	if err != nil {
		return err
	}
	_, err = conn.Write(b)
	return errors.Join(err, conn.Close())
}
