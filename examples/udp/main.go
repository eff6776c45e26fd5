// Command udp sends one UDP beat that names users, as a game gateway would. It
// needs the id and the beat key of an API key: rollcall key create --role writer.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"log"
	"net"
	"os"
	"time"
)

func main() {
	if len(os.Args) < 5 {
		log.Fatal("usage: udp ADDRESS KEY_ID BEAT_KEY USER...")
	}
	id, err := hex.DecodeString(os.Args[2])
	if err != nil || len(id) != 8 {
		log.Fatal("KEY_ID must be 16 hexadecimal digits")
	}
	key, err := hex.DecodeString(os.Args[3])
	if err != nil {
		log.Fatal(err)
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

	conn, err := net.Dial("udp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if _, err := conn.Write(b); err != nil {
		log.Fatal(err)
	}
}
