package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The length of keys: shorter ones can be guessed, longer ones are no key.
const (
	minKey = 16
	maxKey = 4096
)

// Key is what replacements are made with. Who has it can find out whether a
// guess of a name or an address is right, so it stays with whoever recorded.
type Key struct{ secret []byte }

// NewKey is a key that nobody knows.
func NewKey() Key {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails, as of crypto/rand
	return Key{secret}
}

// KeyOf is a key made of bytes, at least 16 of them.
func KeyOf(secret []byte) (Key, error) {
	secret = bytes.TrimSpace(secret)
	switch {
	case len(secret) < minKey:
		return Key{}, fmt.Errorf("a key of %d bytes, want %d or more", len(secret), minKey)
	case len(secret) > maxKey:
		return Key{}, fmt.Errorf("a key of more than %d bytes", maxKey)
	}
	return Key{bytes.Clone(secret)}, nil
}

// KeyFile reads the key in a file. Where there is no file it makes one, for its
// owner's eyes only, and tells so.
func KeyFile(name string) (key Key, made bool, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(name)
	}
	if err != nil {
		return Key{}, false, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxKey+2))
	if err != nil {
		return Key{}, false, err
	}
	if key, err = KeyOf(data); err != nil {
		return Key{}, false, fmt.Errorf("%s: %w", name, err)
	}
	return key, false, nil
}

func makeKey(name string) (Key, bool, error) {
	key := NewKey()
	text := hex.EncodeToString(key.secret)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Key{}, false, err
	}
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return Key{}, false, errors.Join(err, os.Remove(name))
	}
	// The text is the key: it is what the next run reads.
	return Key{[]byte(text)}, true, nil
}

// sum is what the key makes of a text, another for each use.
func (k Key) sum(use, text string) []byte {
	h := hmac.New(sha256.New, k.secret)
	_, _ = io.WriteString(h, use)
	_, _ = h.Write([]byte{0})
	_, _ = io.WriteString(h, text)
	return h.Sum(nil)
}

func (k Key) number(use, text string) uint64 {
	return binary.BigEndian.Uint64(k.sum(use, text))
}
