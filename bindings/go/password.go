//go:build cgo

package redlock

import (
	"errors"
	"strings"
)

// passwords asks the PasswordFunc. The Logger hears why there is no password, because C is told nothing except that
// there is none.
type passwords struct {
	ask    func(server string) (string, error)
	teller *teller
}

// into writes the password and a NUL into the room for it. It returns whether there is a password.
func (p *passwords) into(room []byte, server string) bool {
	var text string
	var err error
	if failure := outside(func() { text, err = p.ask(server) }); failure != "" {
		err = errors.New(failure)
	}
	switch {
	case err != nil:
	case strings.IndexByte(text, 0) >= 0:
		err = errors.New("the password contains a NUL byte")
	case len(text) >= len(room):
		err = errors.New("the password is too long")
	default:
		room[copy(room, text)] = 0
		return true
	}
	p.teller.add(line{levelFault, "no password for " + server + ": " + err.Error()})
	return false
}
