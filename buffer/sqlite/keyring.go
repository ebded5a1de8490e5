package sqlite

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
)

// KeySize is the bytes of a key: AES-256.
const KeySize = 32

// Key is a named key. It encrypts nothing but the data keys of runs, each of which encrypts its run.
type Key struct {
	Name  string
	Bytes []byte
}

// What keeps an encrypted run from being read.
var (
	// ErrKey: the key that a run was encrypted with is not among those that were given, or another one has
	// its name.
	ErrKey = errors.New("the key is missing")
	// errDestroyed: the run was released, and its data key with it.
	errDestroyed = errors.New("the data key is destroyed")
)

// keyring are the keys that were given. The first one wraps the data keys of new runs; without one,
// new runs stay in the clear.
type keyring struct {
	active string
	named  map[string]cipher.AEAD // a nonce of theirs is random, and in front of what they made
}

func newKeyring(keys []Key) (*keyring, error) {
	ring := &keyring{named: map[string]cipher.AEAD{}}
	for i, k := range keys {
		if k.Name == "" || ring.named[k.Name] != nil {
			return nil, fmt.Errorf("encryption key %d: its name, %q, must be there and be no other's", i, k.Name)
		}
		if len(k.Bytes) != KeySize {
			return nil, fmt.Errorf("encryption key %q: must be %d bytes, not %d", k.Name, KeySize, len(k.Bytes))
		}
		ring.named[k.Name] = mustAEAD(cipher.NewGCMWithRandomNonce, k.Bytes)
	}
	if len(keys) > 0 {
		ring.active = keys[0].Name
	}
	return ring, nil
}

// pragmas are those that the write connection needs besides: what is deleted in a page, as a destroyed data key,
// is overwritten there.
func (ring *keyring) pragmas() []string {
	if ring.active == "" {
		return nil
	}
	return []string{"secure_delete(FAST)"}
}

// mustAEAD makes a cipher of a key whose length is right.
func mustAEAD(mode func(cipher.Block) (cipher.AEAD, error), key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("the key's length was checked: " + err.Error())
	}
	aead, err := mode(block)
	if err != nil {
		panic("AES has the block size of GCM: " + err.Error())
	}
	return aead
}

// fresh makes the data key of a new run, and wraps it for the file; nil where new runs are not encrypted.
func (ring *keyring) fresh(id ulid.ULID) (key *dataKey, wrapped []byte) {
	if ring.active == "" {
		return nil, nil
	}
	secret := make([]byte, KeySize)
	_, _ = rand.Read(secret) // it never fails
	return newDataKey(id, ring.active, secret), ring.wrap(id, secret)
}

// wrap is a run's data key as the file gets it, wrapped by the first key.
func (ring *keyring) wrap(id ulid.ULID, secret []byte) []byte {
	return ring.named[ring.active].Seal(nil, nil, secret, wrapping(id, ring.active))
}

// unwrap makes the data key of a run that was stored. What keeps it from being used is told by its use: most
// of what is known of a run can be told without it.
func (ring *keyring) unwrap(id ulid.ULID, name string, wrapped []byte) *dataKey {
	secret, err := ring.secret(id, name, wrapped)
	if err != nil {
		return &dataKey{name: name, err: err}
	}
	return newDataKey(id, name, secret)
}

// secret is what wrap was given.
func (ring *keyring) secret(id ulid.ULID, name string, wrapped []byte) ([]byte, error) {
	if wrapped == nil {
		return nil, errDestroyed
	}
	named := ring.named[name]
	if named == nil {
		return nil, fmt.Errorf("encrypted with the key %q: %w", name, ErrKey)
	}
	secret, err := named.Open(nil, nil, wrapped, wrapping(id, name))
	if err != nil || len(secret) != KeySize {
		return nil, fmt.Errorf("its data key is damaged, or %q is another key than it was encrypted with", name)
	}
	return secret, nil
}

// wrapping is what a wrapped key is bound to.
func wrapping(id ulid.ULID, name string) []byte {
	return []byte("spool data key 1 " + id.String() + " " + name)
}

// firstEncrypted is the schema from which on runs can be encrypted.
const firstEncrypted = 2

const (
	selectKeys = `SELECT key, count(*) FROM ciphers WHERE wrapped IS NOT NULL GROUP BY key`
	// selectWrapped takes more than one, since one row may be damaged.
	selectWrapped = `SELECT r.id, c.wrapped FROM ciphers c JOIN runs r ON r.run = c.run WHERE c.key = ? AND c.wrapped IS NOT NULL LIMIT 8`
)

// keysInUse are the names of the keys without which some runs cannot be read, and how many those are.
func keysInUse(ctx context.Context, db querier) (map[string]int64, error) {
	rows, err := db.QueryContext(ctx, selectKeys)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	defer rows.Close() // Err below says whether all came
	used := map[string]int64{}
	for rows.Next() {
		var name string
		var runs int64
		if err := rows.Scan(&name, &runs); err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		used[name] = runs
	}
	return used, rows.Err()
}

// querier is a database, or one state of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// covers refuses a log with runs that the keys do not open.
func (ring *keyring) covers(ctx context.Context, db querier) error {
	used, err := keysInUse(ctx, db)
	if err != nil {
		return err
	}
	lacking, err := ring.lacking(ctx, db, used)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(lacking)) {
			wrong = append(wrong, fmt.Sprintf("%q (%d runs)", name, lacking[name]))
		}
		return fmt.Errorf("%w: the log has runs that are encrypted with %s, and encryption.keys has none of that name, or another one; a key can go when no run needs it any more",
			ErrKey, strings.Join(wrong, ", "))
	}
	return nil
}

// lacking are those of the used keys that are not in the ring, or are another of that name there.
func (ring *keyring) lacking(ctx context.Context, db querier, used map[string]int64) (map[string]int64, error) {
	left := map[string]int64{}
	for name, runs := range used {
		opens, err := ring.opens(ctx, db, name)
		if err != nil {
			return nil, err
		}
		if !opens {
			left[name] = runs
		}
	}
	return left, nil
}

// opens reports whether the key of that name is the one that wrapped data keys of the log.
func (ring *keyring) opens(ctx context.Context, db querier, name string) (bool, error) {
	rows, err := db.QueryContext(ctx, selectWrapped, name)
	if err != nil {
		return false, fmt.Errorf("read keys: %w", err)
	}
	defer rows.Close() // Err below says whether all came
	for rows.Next() {
		var text string
		var wrapped []byte
		if err := rows.Scan(&text, &wrapped); err != nil {
			return false, fmt.Errorf("read keys: %w", err)
		}
		if id, err := ulid.ParseStrict(text); err == nil && ring.unwrap(id, name, wrapped).err == nil {
			return true, nil
		}
	}
	return false, rows.Err()
}
