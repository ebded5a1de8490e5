package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

// end closes an answer as its run ended: a completed run and a stored refusal end cleanly, whatever
// else is told in the dialect and then aborted, since most SDKs take a clean end for success.
func (a *answer) end(run *buffer.Run) {
	if a.partial && len(run.Partial) > 0 {
		a.write(run.Partial)
	}
	switch run.Outcome {
	case buffer.Completed:
		return
	case buffer.Failed:
		a.endFailed(run)
		return
	}
	if a.native {
		if run.Reason == buffer.ProviderError {
			return // the provider's own error is the end, and its bytes are delivered
		}
		a.write(a.interruption(run))
	}
	a.abort()
}

// endFailed ends the answer of a run that never had content.
func (a *answer) endFailed(run *buffer.Run) {
	switch {
	case a.held: // 200 had gone out: the failure is told in band
		a.write(a.interruption(run))
		a.abort()
	case a.native && run.Head == 0:
		a.write(failureBody(run))
	}
}

// abort cuts the connection after what was written has left. Without it the answer would look whole.
func (a *answer) abort() {
	a.flush()
	panic(http.ErrAbortHandler)
}

// interruption is the error event of the run's dialect. It is made from the run's row, so that it is
// the same bytes each time; after an event that the provider did not finish with its blank line, it
// begins with what is missing, so that the two are not taken for one.
func (a *answer) interruption(run *buffer.Run) []byte {
	event := provider.Interruption(run.Dialect, streamFraming(run), provider.Cut{
		RunID: run.ID.String(), Reason: string(run.Reason), Limit: run.Limit(), Next: run.Head, Sequence: run.Head,
	})
	if len(event) == 0 || len(a.last) == 0 {
		return event
	}
	return append(provider.Closing(streamFraming(run), a.last), event...)
}

// streamFraming is how the run's stream is cut, or will be, as far as its dialect tells.
func streamFraming(run *buffer.Run) frame.Kind {
	if run.Framing != "" && run.State != buffer.Failed {
		return run.Framing
	}
	_, query, _ := strings.Cut(run.Path, "?")
	return provider.StreamKind(run.Dialect, query)
}

// forGood reports that a repeat of the failed run's call must not be made: somebody has stopped it, or its
// provider may have done already what is not to be done twice.
func forGood(run *buffer.Run) bool {
	switch run.Reason {
	case buffer.CancelAsked:
		return true
	case buffer.OwnerLost, buffer.Shutdown, buffer.Storage, buffer.Silent:
		return run.Sends > 0 && run.Kind != policy.ReadOnly
	}
	return false
}

// failedCode is the code of a run that failed without an answer of the provider's own.
func failedCode(run *buffer.Run) string {
	switch run.Reason {
	case buffer.Silent, buffer.Stalled:
		return wire.CodeUpstreamTimeout
	case buffer.OwnerLost:
		if forGood(run) {
			return wire.CodeUpstreamFailed // nothing will come of it, here or elsewhere
		}
		return wire.CodeDraining
	case buffer.Shutdown:
		return wire.CodeDraining
	case buffer.Storage:
		return wire.CodeStorage
	}
	if run.Status == http.StatusTooManyRequests && run.Reason == buffer.Limit {
		return wire.CodeBusy
	}
	if run.Status == http.StatusGatewayTimeout {
		return wire.CodeUpstreamTimeout
	}
	return wire.CodeUpstreamFailed
}

// failureBody tells of such a failure in the dialect's error shape.
func failureBody(run *buffer.Run) []byte {
	code := failedCode(run)
	k := kinds[code]
	return provider.ErrorBody(run.Dialect, provider.Error{
		Status: k.status, Type: errorType(run.Dialect, k.openAIType), Code: code,
		Message: strings.TrimSpace("spool: run " + run.ID.String() + " failed: " + string(run.Reason) + " " + run.Limit()),
	})
}

// stored delivers what is in the log now, up to the head as it is, and ends; a run that has ended
// ends as it did.
func (a *answer) stored(ctx context.Context) {
	head := a.tail.Run.Head
	for {
		page, err := a.tail.Poll(ctx)
		if err != nil && err != io.EOF {
			a.broken(err)
			return
		}
		if !a.deliver(page) {
			return
		}
		if err == io.EOF {
			a.end(&page.Run)
			return
		}
		if a.tail.Pos() >= head && page.Run.State.Live() {
			return
		}
	}
}

// poll answers as soon as there is one chunk, with what is there then, or 204 after the wait.
func (a *answer) poll(ctx context.Context, wait time.Duration) {
	page, err := a.tail.Within(ctx, wait)
	switch {
	case errors.Is(err, resume.ErrQuiet):
		a.nothing(&page.Run)
	case err == io.EOF:
		a.deliver(page)
		a.end(&page.Run)
	case err != nil && a.server.left():
		a.nothing(&a.tail.Run)
	case err != nil:
		a.broken(err)
	default:
		a.pollPage(page)
	}
}

// nothing ends a long poll for which nothing has come.
func (a *answer) nothing(run *buffer.Run) {
	a.describe(a.w.Header(), run)
	a.w.WriteHeader(http.StatusNoContent)
}

// pollPage delivers one page of a long poll. Its X-Buffer-Next is where the next poll starts.
func (a *answer) pollPage(page *buffer.Page) {
	last := page.Run.State.Ended() && a.tail.Pos() == page.Run.Head
	page.Run.Head = a.tail.Pos()
	if a.deliver(page) && last {
		a.end(&page.Run)
	}
}
