package resume_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/resume"
)

const fuzzedRun = "01JZZZZZZZ0000000000000009"

// FuzzUnderstand: every ask is understood or refused as a bad position; what is understood is a start
// from 0 on, and the id of an event is the position after it.
func FuzzUnderstand(f *testing.F) {
	for _, v := range []string{"", "0", "5", "-1", "+1", " 1", "1e3", "0x1", "tail", "9223372036854775807", "9223372036854775808", fuzzedRun + ":7", fuzzedRun + ":", ":", "20s", "5m0.1s", "true"} {
		f.Add(uint8(1), v, v, v)
		f.Add(uint8(255), v, "1", "1s")
		f.Add(uint8(8), v, "0", "0")
	}
	f.Fuzz(func(t *testing.T, given uint8, position, follow, wait string) {
		text := func(bit uint8, v string) resume.Text { return resume.Text{Value: v, Given: given&bit != 0} }
		ask := resume.Ask{
			From: text(1, position), FromByte: text(2, position), StartingAfter: text(4, position), LastEventID: text(8, position),
			Follow: text(16, follow), Wait: text(32, wait),
		}
		s, err := resume.Understand(fuzzedRun, ask)
		if err != nil {
			if !errors.Is(err, resume.ErrBadPosition) {
				t.Fatalf("%+v: %v", ask, err)
			}
			return
		}
		if s.Wait < 0 || s.Wait > resume.MaxWait || s.Wait > 0 && s.Follow {
			t.Fatalf("%+v waits %s, follows %t", ask, s.Wait, s.Follow)
		}
		n, ok := whole(position)
		switch {
		case given&15 == 1 && position == "tail":
			ok = true
		case given&8 != 0:
			n, ok = whole(strings.TrimPrefix(strings.ToUpper(position), fuzzedRun+":"))
			n = min(n, math.MaxInt64-1) + 1
		case given&15 == 0:
			n, ok = 0, true
		}
		if !ok {
			t.Fatalf("%+v is understood as %+v", ask, s)
		}
		if given&56 == 0 && given&7 == 1 && position != "tail" && s.Otherwise(n) != s {
			t.Fatalf("%+v names no position", ask)
		}
		if given&48 == 0 && given&15 == 0 && s != resume.FromPosition(n) {
			t.Fatalf("%+v starts at %+v, want %d", ask, s, n)
		}
	})
}

// whole is a number from 0 of digits alone.
func whole(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strings.Trim(text, "0123456789") == ""
}

// FuzzUnderstandMany: what is followed is what was asked for, each run once and in its order.
func FuzzUnderstandMany(f *testing.F) {
	const other = "01JZZZZZZZ000000000000000A"
	f.Add(fuzzedRun, fuzzedRun+":4", true)
	f.Add(fuzzedRun+" "+other+":7", other+":4,"+fuzzedRun+":1", true)
	f.Add(fuzzedRun+":1:2 "+strings.ToLower(fuzzedRun), "", false)
	f.Add(strings.Repeat(fuzzedRun+" ", 17), ",,", true)
	f.Fuzz(func(t *testing.T, runs, last string, given bool) {
		asked := strings.Fields(runs)
		all, err := resume.UnderstandMany(asked, resume.Text{Value: last, Given: given})
		if err != nil {
			if !errors.Is(err, resume.ErrBadPosition) {
				t.Fatal(err)
			}
			return
		}
		if len(all) != len(asked) || len(all) > resume.MaxEventRuns {
			t.Fatalf("%d runs are followed, %d were asked for", len(all), len(asked))
		}
		seen := map[ulid.ULID]bool{}
		for i, one := range all {
			if seen[one.Run] || !strings.HasPrefix(strings.ToUpper(asked[i]), one.Run.String()) {
				t.Fatalf("%v is followed for %v", all, asked)
			}
			seen[one.Run] = true
		}
	})
}

// FuzzToken: a text is a token if it was minted, and no other is; what it grants is what was minted.
func FuzzToken(f *testing.F) {
	tokens := resume.NewTokens([]byte("secret"), []byte("previous"))
	now := time.UnixMilli(1764500000000)
	grant := resume.Grant{Run: ulid.MustParse(fuzzedRun), From: 3, Origin: "https://a.example", Expires: now.Add(time.Minute)}
	f.Add(tokens.Mint(grant), int64(3), "https://a.example", int64(60000))
	f.Add(resume.NewTokens([]byte("previous")).Mint(grant), int64(0), "", int64(1))
	f.Add(resume.NewTokens([]byte("forged")).Mint(grant), int64(-1), "x", int64(-1))
	f.Add("srt_", int64(0), "", int64(0))
	f.Fuzz(func(t *testing.T, text string, from int64, origin string, left int64) {
		if g, err := tokens.Read(text, now); err == nil && tokens.Mint(g) != text && resume.NewTokens([]byte("previous")).Mint(g) != text {
			t.Fatalf("%q is forged, and grants %+v", text, g)
		}
		if len(origin) > resume.MaxOrigin {
			return
		}
		expires := now.Add(time.Duration(left%(1<<40)) * time.Millisecond / 1000)
		g := resume.Grant{Run: grant.Run, From: from, Origin: origin, Expires: time.UnixMilli(expires.UnixMilli())}
		minted := tokens.Mint(g)
		got, err := tokens.Read(minted, now)
		if (err == nil) != now.Before(g.Expires) || err == nil && (got.Run != g.Run || got.From != from || got.Origin != origin || !got.Expires.Equal(g.Expires)) {
			t.Fatalf("%+v is read as %+v, %v", g, got, err)
		}
		for i := range minted { // any one character changed
			forged := []byte(minted)
			forged[i] ^= 1
			if _, err := tokens.Read(string(forged), now); err == nil {
				t.Fatalf("%q is a token with character %d changed", forged, i)
			}
		}
		if _, err := resume.NewTokens([]byte("another")).Read(minted, now); err == nil {
			t.Fatal("another buffer takes it")
		}
	})
}
