package jetstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer"
)

func TestPatience_IsTwiceTheSlowestOfLate(t *testing.T) {
	start := time.Unix(1_764_500_000, 0)
	const ms = time.Millisecond
	type ack struct{ after, took time.Duration }
	for _, row := range []struct {
		name string
		acks []ack
		at   time.Duration
		want time.Duration
	}{
		{"nothing heard", nil, 0, firstWait},
		{"quick ones", []ack{{0, 5 * ms}, {0, 9 * ms}}, 0, leastWait},
		{"a slow one", []ack{{0, 5 * ms}, {0, 120 * ms}, {0, 5 * ms}}, 0, 240 * ms},
		{"a very slow one", []ack{{0, 3 * time.Second}}, 0, firstWait},
		{"an outage, some time ago", []ack{{0, time.Minute}}, 2 * forgets, firstWait / 2},
		{"a slow one, some time ago", []ack{{0, 120 * ms}, {forgets, 5 * ms}}, forgets, 120 * ms},
		{"a slow one, long ago", []ack{{0, 120 * ms}}, 10 * forgets, leastWait},
	} {
		var p patience
		for _, a := range row.acks {
			p.heard(a.took, start.Add(a.after))
		}
		if got := p.first(start.Add(row.at)); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// The servers' own pace is what the store goes by, also where it is told of by a look.
func TestPublish_LearnsHowLongAcknowledgementsTake(t *testing.T) {
	s := alone(t)
	if !s.patience.at.IsZero() {
		t.Fatal("something was heard before anything was asked")
	}
	log, r := begun(t, s, "")
	before := s.patience.at
	if before.IsZero() {
		t.Fatal("nothing was heard of two commits")
	}
	v, err := s.load(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), [][]byte{chunk(0)}, buffer.Streaming, buffer.Closing{}); err != nil {
		t.Fatal(err)
	}
	heard := s.patience.at
	d := draft{record: s.moved(v.record, buffer.Streaming, buffer.Closing{}), chunks: [][]byte{chunk(0)}}
	last, err := s.load(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.commit(t.Context(), v, d, last.nonce); err != nil || !s.patience.at.After(heard) {
		t.Errorf("nothing was heard of a commit that was found to be stored; error %v", err)
	}
}

// Only silence says that the servers are busy.
func TestLonger_AfterSilenceAlone(t *testing.T) {
	for _, row := range []struct {
		name string
		wait time.Duration
		err  error
		want time.Duration
	}{
		{"silence", firstWait, context.DeadlineExceeded, 2 * firstWait},
		{"silence, as the client names it", firstWait, nats.ErrTimeout, 2 * firstWait},
		{"silence, for long", lastWait, context.DeadlineExceeded, lastWait},
		{"nobody there", firstWait, nats.ErrNoResponders, firstWait},
		{"no connection", firstWait, nats.ErrReconnectBufExceeded, firstWait},
		{"a connection that was lost", firstWait, context.Canceled, firstWait},
		{"a refusal", firstWait, &apiError{Code: codeWrongSequence}, firstWait},
		{"another error", firstWait, errors.New("other"), firstWait},
	} {
		if got := longer(row.wait, row.err); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
