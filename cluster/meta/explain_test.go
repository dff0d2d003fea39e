package meta

import (
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWhatPassesByItselfIsKnown(t *testing.T) {
	for _, c := range []struct {
		err     error
		passing bool
	}{
		{rpctypes.ErrTimeout, true},
		{rpctypes.ErrNoLeader, true},
		{rpctypes.ErrTooManyRequests, true},
		{rpctypes.ErrNoSpace, false},
		{fmt.Errorf("join: %w", rpctypes.ErrLeaderChanged), true},
		{status.Error(codes.Unavailable, "the connection is lost"), true},
		{rpctypes.ErrPermissionDenied, false},
		{ErrPresent, false},
		{errors.New("the cluster has no settings yet"), false},
	} {
		if got := Passing(c.err); got != c.passing {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}
