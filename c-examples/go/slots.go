package redlock

import "context"

// How many calls into C may be under way at a time: of one Manager, and of the process, which would
// be ended by Go at 10,000 threads. There are as many again for holders, who wait for nobody else.
const (
	slotsOfManager = 48
	slotsOfProcess = 480
)

// slots is a place for each call of one kind that may be under way. Who waits for one is served in
// the order of arrival.
type slots chan struct{}

var (
	allAsking  = make(slots, slotsOfProcess)
	allHolding = make(slots, slotsOfProcess)
)

// take waits for a slot here, and for one of the process. No call waits for another one's while it
// is under way, so both are had before long.
func (s slots) take(ctx context.Context, closing <-chan struct{}, ofProcess slots) error {
	for i, each := range []slots{s, ofProcess} {
		select {
		case each <- struct{}{}:
			continue
		default:
		}
		var err error
		select {
		case each <- struct{}{}:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-closing:
			err = ErrClosed
		}
		if i > 0 {
			<-s
		}
		return err
	}
	return nil
}

func (s slots) give(ofProcess slots) {
	<-ofProcess
	<-s
}
