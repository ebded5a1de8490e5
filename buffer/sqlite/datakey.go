package sqlite

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/oklog/ulid/v2"
)

// dataKey encrypts what is stored of one run, and nothing else; nil leaves it in the clear. This is
// the one seam: the file gets nothing of an encrypted run's content but what has come through here.
//
// A nonce is 96 random bits, since no position is written once only: a transaction is tried again, and
// recovery writes anew what a power cut has taken. A run has at most limits.events chunks, 2^22, each
// encrypted twice, and some retries: of 2^24 nonces two are the same with a probability below 2^-48.
type dataKey struct {
	run  string
	name string // of the key that wraps it
	aead cipher.AEAD
	err  error // why it cannot be used
}

const (
	nonceSize  = 12
	tagSize    = 16
	cipherSize = nonceSize + tagSize // what encrypted data has besides
)

// What is wrong with data that cannot be decrypted.
var (
	errDamaged = errors.New("the encrypted data is damaged, or is not from here")
	errNoKey   = errors.New("the data is encrypted, but its run has no data key")
	errInClear = errors.New("the data is not encrypted, but its run is")
	errLost    = errors.New("the data key is gone, but the run was not released")
)

func newDataKey(id ulid.ULID, name string, secret []byte) *dataKey {
	return &dataKey{run: id.String(), name: name, aead: mustAEAD(cipher.NewGCM, secret)}
}

// usable says why nothing of the run can be decrypted; nil where it can, and where it is in the clear.
func (k *dataKey) usable() error {
	if k == nil {
		return nil
	}
	return k.err
}

// encrypt returns data, of the same length, as the file gets it, with its nonce and tag. They are bound
// to the run and to where they are: elsewhere they are nothing.
func (k *dataKey) encrypt(data []byte, where string) (hidden, nonceTag []byte) {
	if k == nil {
		return data, nil
	}
	nonceTag = make([]byte, nonceSize, cipherSize)
	_, _ = rand.Read(nonceTag) // it never fails
	hidden = k.aead.Seal(make([]byte, 0, len(data)+tagSize), nonceTag, data, k.bound(where))
	return hidden[:len(data):len(data)], append(nonceTag, hidden[len(data):]...)
}

// decrypt returns what encrypt was given, or an error: never other bytes. What is in the clear is returned as it is.
func (k *dataKey) decrypt(hidden, nonceTag []byte, where string) ([]byte, error) {
	if k != nil {
		hidden = append(make([]byte, 0, len(hidden)+tagSize), hidden...)
	}
	return k.open(hidden, nonceTag, where)
}

// open is decrypt in place: it writes over hidden, and over tagSize bytes behind it where it has the capacity.
func (k *dataKey) open(hidden, nonceTag []byte, where string) ([]byte, error) {
	switch {
	case k == nil && nonceTag == nil:
		return hidden, nil
	case k == nil:
		return nil, errNoKey
	case k.err != nil:
		return nil, k.err
	case len(nonceTag) != cipherSize:
		return nil, errInClear
	}
	hidden = append(hidden, nonceTag[nonceSize:]...)
	data, err := k.aead.Open(hidden[:0], nonceTag[:nonceSize], hidden, k.bound(where))
	if err != nil {
		return nil, errDamaged
	}
	return data, nil
}

// bound is what the tag vouches for besides the data.
func (k *dataKey) bound(where string) []byte { return []byte("spool 1 " + k.run + " " + where) }

// hide is encrypt for one column, where nonce and tag stand in front. NULL stays NULL.
func (k *dataKey) hide(data []byte, where string) []byte {
	if data == nil {
		return nil
	}
	hidden, nonceTag := k.encrypt(data, where)
	return append(nonceTag, hidden...)
}

// bare is what hide was given; nil too where there is no key to tell it.
func (k *dataKey) bare(column []byte, where string) ([]byte, error) {
	if column == nil {
		return nil, nil
	}
	if len(column) < cipherSize {
		return nil, fmt.Errorf("%s: %w", where, errDamaged)
	}
	data, err := k.decrypt(column[cipherSize:], column[:cipherSize], where)
	switch {
	case errors.Is(err, errDestroyed), errors.Is(err, ErrKey):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return data, nil
}

// hideText is hide for a column of text. What is in the clear stays so.
func (k *dataKey) hideText(text []byte, where string) string {
	if k == nil {
		return string(text)
	}
	return base64.StdEncoding.EncodeToString(k.hide(text, where))
}

// bareText is what hideText was given; nil too where there is no key to tell it.
func (k *dataKey) bareText(column, where string) ([]byte, error) {
	if k == nil {
		return []byte(column), nil
	}
	b, err := base64.StdEncoding.DecodeString(column)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, errInClear)
	}
	return k.bare(b, where)
}

// encrypt returns the piece as the file gets it.
func (p piece) encrypt(k *dataKey) piece {
	if k != nil {
		p.data, p.cipher = k.encrypt(p.data, p.where())
	}
	return p
}

// decrypt returns the piece as it was packed. Its data is the caller's own.
func (p piece) decrypt(k *dataKey) (piece, error) {
	if k != nil {
		p.data = append(make([]byte, 0, len(p.data)+tagSize), p.data...)
	}
	return p.open(k)
}

// open is decrypt in place, as dataKey's.
func (p piece) open(k *dataKey) (piece, error) {
	where := ""
	if k != nil {
		where = p.where()
	}
	var err error
	if p.data, err = k.open(p.data, p.cipher, where); err != nil {
		err = fmt.Errorf("at position %d: %w", p.pos, err)
	}
	return p, err
}

// where is the place of a piece, and the sizes of its chunks: they must not change either.
func (p piece) where() string {
	b := strconv.AppendInt(make([]byte, 0, 48+len(p.sizes)), p.pos, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, p.start, 10)
	b = append(b, ' ')
	return string(append(b, p.sizes...))
}
