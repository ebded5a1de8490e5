package api

import (
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
)

// WireRun is the run as JSON. phase and readers are what this process knows of it.
func WireRun(r buffer.Run, phase string, readers int) wire.Run {
	out := wire.Run{
		ID: r.ID.String(), State: string(r.State), Outcome: string(r.Outcome), Reason: string(r.Reason), Notes: r.Notes,
		Provider: r.Provider, Route: r.Route, Dialect: string(r.Dialect), Model: r.Model,
		Method: r.Method, Path: r.Path, Key: r.Key, Operation: r.Operation,
		Status: r.Status, Head: r.Head, Bytes: r.Bytes, PartialBytes: int64(len(r.Partial)),
		Readers: readers, Tags: r.Tags, Kind: string(r.Kind), OnDisconnect: disconnectText(r.OnDisconnect),
		Created: r.Created.UTC(), Committed: moment(r.Committed), Ended: moment(r.Ended),
		Released: moment(r.Released), Expires: moment(r.Expires()),
		Usage: wireUsage(r.Usage), Saved: wire.Saved{Replays: r.Replays, Attaches: r.Attaches}, Attempts: []wire.Attempt{},
	}
	if r.Usage != nil {
		out.Saved.OutputTokens = (r.Replays + r.Attaches) * r.Usage.OutputTokens
	}
	if r.State == buffer.Idle {
		out.Phase = phase
	}
	if r.RetryOf != zeroID {
		out.RetryOf = r.RetryOf.String()
	}
	if out.Notes == nil {
		out.Notes = []string{}
	}
	if out.Tags == nil {
		out.Tags = map[string]string{}
	}
	for _, a := range r.Attempts {
		out.Attempts = append(out.Attempts, wire.Attempt{
			N: a.N, Route: a.Route, Model: a.Model, SentAt: a.Sent.UTC(), EndedAt: moment(a.Ended),
			Status: a.Status, ProviderRequestID: a.RequestID, Class: string(a.Class), Sent: string(a.SentState),
			Action: string(a.Action), Why: a.Why, HintMS: a.Hint.Milliseconds(), FirstByteMS: a.FirstByte.Milliseconds(), Billed: string(a.Billed),
			ReusedConnection: a.ReusedConn, RequestBytes: a.RequestBytes,
			PreambleBytes: a.PreambleBytes, ContentBytes: a.ContentBytes, Usage: wireUsage(a.Usage),
		})
	}
	return out
}

// moment is nil for a time that has not come.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func wireUsage(u *provider.Usage) *wire.Usage {
	if u == nil {
		return nil
	}
	return &wire.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: u.Total()}
}

func disconnectText(o buffer.OnDisconnect) string {
	switch {
	case !o.Cancel:
		return "continue"
	case o.After == 0:
		return "cancel"
	}
	return "cancel-after=" + o.After.String()
}
