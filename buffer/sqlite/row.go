package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
)

// runColumns are what runRow.dest reads, in its order.
const runColumns = `SELECT r.run, r.owner, r.id, r.caller, r.state, r.outcome, r.reason, r.head, r.bytes, r.ttl,
	r.created, r.committed, r.ended, r.released, r.swept,
	c.key, c.body_hash, c.retry_of, c.method, c.path, c.provider, c.route, c.dialect, c.model, c.stream, c.kind,
	c.operation, c.turn, c.claimed, c.replays, c.attaches, c.tags, c.cancel_after,
	c.budget_attempts, c.budget_elapsed, c.budget_cost, c.budget_spent, c.budget_since,
	c.notes, c.status, c.header, c.framing, c.provider_id, c.partial,
	c.input_tokens, c.output_tokens, c.usage, (SELECT count(*) FROM attempts a WHERE a.run = r.run),
	x.key, x.wrapped, x.header, x.partial
FROM runs r JOIN calls c ON c.run = r.run LEFT JOIN ciphers x ON x.run = r.run `

// listColumns leave out the columns that can be as large as a chunk.
var listColumns = strings.NewReplacer("c.partial", "NULL", "x.partial", "NULL").Replace(runColumns)

const selectRun = runColumns + `WHERE r.id = ?`

// runRow is a run as the file has it.
type runRow struct {
	row, owner  int64
	r           buffer.Run
	id, retryOf string
	ttl         int64
	created     int64

	committed, ended, released, swept sql.NullInt64

	tags, notes string
	cancelAfter sql.NullInt64
	elapsed     int64
	since       sql.NullInt64
	header      sql.NullString
	usage       usageRow

	cipher cipherRow
	key    *dataKey // which open has made of it
}

// cipherRow is what an encrypted run has besides; all NULL for one in the clear.
type cipherRow struct {
	key                      sql.NullString
	wrapped, header, partial []byte
}

func (w *runRow) dest() []any {
	r := &w.r
	return []any{&w.row, &w.owner, &w.id, &r.Caller, &r.State, &r.Outcome, &r.Reason, &r.Head, &r.Bytes, &w.ttl,
		&w.created, &w.committed, &w.ended, &w.released, &w.swept,
		&r.Key, &r.BodyHash, &w.retryOf, &r.Method, &r.Path, &r.Provider, &r.Route, &r.Dialect, &r.Model, &r.Stream, &r.Kind,
		&r.Operation, &r.Turn, &r.Claimed, &r.Replays, &r.Attaches, &w.tags, &w.cancelAfter,
		&r.Budget.Attempts, &w.elapsed, &r.Budget.CostUSD, &r.Budget.Spent, &w.since,
		&w.notes, &r.Status, &w.header, &r.Framing, &r.ProviderID, &r.Partial,
		&w.usage.input, &w.usage.output, &w.usage.raw, &r.Sends,
		&w.cipher.key, &w.cipher.wrapped, &w.cipher.header, &w.cipher.partial}
}

// open decodes what dest has received. Of an encrypted run whose key is not there, and beside an error, it tells
// what can be told.
func (w *runRow) open(keys *keyring) (buffer.Run, error) {
	if w.cipher.key.Valid {
		id, _ := ulid.ParseStrict(w.id) // run tells
		w.key = keys.unwrap(id, w.cipher.key.String, w.cipher.wrapped)
		if errors.Is(w.key.err, errDestroyed) && w.r.State != buffer.Released {
			w.key.err = errLost
		}
	}
	r, err := w.run()
	if err != nil || w.key == nil {
		return r, err
	}
	r.EncryptedWith = w.key.name
	if r.Header, r.Partial, err = w.hidden(); err != nil {
		return r, fmt.Errorf("run %s: %w", w.id, err)
	}
	return r, nil
}

// hidden is what an encrypted run's call has in the columns of ciphers, and nowhere else.
func (w *runRow) hidden() (h http.Header, partial []byte, err error) {
	if w.header.Valid {
		return nil, nil, fmt.Errorf("header: %w", errInClear)
	}
	if w.r.Partial != nil {
		return nil, nil, fmt.Errorf("partial: %w", errInClear)
	}
	if errors.Is(w.key.err, errLost) {
		return nil, nil, errLost
	}
	header, err := w.key.bare(w.cipher.header, "header")
	if err == nil && header != nil {
		h, err = decodeHeader(string(header))
	}
	if err != nil {
		return nil, nil, err
	}
	partial, err = w.key.bare(w.cipher.partial, "partial")
	return h, partial, err
}

// run decodes what is in the clear.
func (w *runRow) run() (buffer.Run, error) {
	r := w.r
	var err error
	if r.ID, err = ulid.ParseStrict(w.id); err != nil {
		return r, fmt.Errorf("run %q: %w", w.id, err)
	}
	if w.retryOf != "" {
		if r.RetryOf, err = ulid.ParseStrict(w.retryOf); err != nil {
			return r, fmt.Errorf("run %s: retry of: %w", w.id, err)
		}
	}
	r.TTL = time.Duration(w.ttl) * time.Millisecond
	r.Created = time.UnixMilli(w.created).UTC()
	r.Committed, r.Ended, r.Released = fromMillis(w.committed), fromMillis(w.ended), fromMillis(w.released)
	if w.cancelAfter.Valid {
		r.OnDisconnect = buffer.OnDisconnect{Cancel: true, After: time.Duration(w.cancelAfter.Int64) * time.Millisecond}
	}
	r.Budget.Elapsed, r.Budget.Since = time.Duration(w.elapsed)*time.Millisecond, fromMillis(w.since)
	r.Usage, err = w.usage.usage(w.key, "usage")
	err = errors.Join(err, json.Unmarshal([]byte(w.tags), &r.Tags), json.Unmarshal([]byte(w.notes), &r.Notes))
	if err == nil && w.header.Valid {
		r.Header, err = decodeHeader(w.header.String)
	}
	if err != nil {
		return r, fmt.Errorf("run %s: %w", w.id, err)
	}
	if len(r.Tags) == 0 {
		r.Tags = nil
	}
	if len(r.Notes) == 0 {
		r.Notes = nil
	}
	return r, nil
}

// stored is the new run r as the file will give it back, so that memory and file never differ. It
// shares nothing that the caller could change, and has none of what a run gets after its creation.
func stored(r buffer.Run) (buffer.Run, error) {
	var w runRow
	w.r = buffer.Run{Caller: r.Caller, Key: r.Key, BodyHash: r.BodyHash, Method: r.Method, Path: r.Path,
		Provider: r.Provider, Route: r.Route, Dialect: r.Dialect, Model: r.Model, Stream: r.Stream, Kind: r.Kind,
		Operation: r.Operation, Turn: r.Turn, Budget: r.Budget, State: r.State}
	w.id, w.created, w.ttl = r.ID.String(), r.Created.UnixMilli(), r.TTL.Milliseconds()
	w.retryOf = idText(r.RetryOf)
	w.elapsed = r.Budget.Elapsed.Milliseconds()
	if !r.Budget.Since.IsZero() {
		w.since = sql.NullInt64{Int64: r.Budget.Since.UnixMilli(), Valid: true}
	}
	w.tags, w.notes = tagsText(r.Tags), "[]"
	if r.OnDisconnect.Cancel {
		w.cancelAfter = sql.NullInt64{Int64: r.OnDisconnect.After.Milliseconds(), Valid: true}
	}
	return w.run()
}

// usageRow is a provider.Usage, NULL where there is none.
type usageRow struct {
	input, output sql.NullInt64
	raw           sql.NullString
}

func (w usageRow) usage(key *dataKey, where string) (u *provider.Usage, err error) {
	if !w.input.Valid {
		return nil, nil
	}
	u = &provider.Usage{InputTokens: w.input.Int64, OutputTokens: w.output.Int64}
	if w.raw.Valid {
		u.Raw, err = key.bareText(w.raw.String, where)
	}
	return u, err
}

// usageValues are the three columns of a usage.
func usageValues(u *provider.Usage, key *dataKey, where string) (input, output, raw any) {
	if u == nil {
		return nil, nil, nil
	}
	if u.Raw != nil {
		raw = key.hideText(u.Raw, where)
	}
	return u.InputTokens, u.OutputTokens, raw
}

func fromMillis(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return time.UnixMilli(ms.Int64).UTC()
}

func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func idText(id ulid.ULID) string {
	if id == (ulid.ULID{}) {
		return ""
	}
	return id.String()
}

func tagsText(tags map[string]string) string {
	if len(tags) == 0 {
		return "{}"
	}
	return jsonText(tags)
}

// jsonText encodes maps and slices of strings, which always can be.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("strings have a JSON form: " + err.Error())
	}
	return string(b)
}

// headerText keeps header values byte for byte, which JSON alone would not where they are no UTF-8:
// each byte becomes the code point of its number.
func headerText(h http.Header) any {
	if h == nil {
		return nil
	}
	return jsonHeader(h)
}

func jsonHeader(h http.Header) string {
	out := make(map[string][]string, len(h))
	for name, values := range h {
		out[widen(name)] = mapped(values, widen)
	}
	return jsonText(out)
}

func decodeHeader(text string) (http.Header, error) {
	var in map[string][]string
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	h := make(http.Header, len(in))
	for name, values := range in {
		h[narrow(name)] = mapped(values, narrow)
	}
	return h, nil
}

func mapped(in []string, f func(string) string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}

func widen(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

func narrow(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		out = append(out, byte(r))
	}
	return string(out)
}
