package device

import (
	"fmt"
	"sync"
)

// memoryStream is a buffer until Commit puts it into the device's metadata. Its
// bytes count as used from the first one.
type memoryStream struct {
	memory *Memory
	name   string

	mu     sync.Mutex
	data   []byte
	closed bool
	failed error
}

func (s *memoryStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, fmt.Errorf("write %s: %w", memoryPath(s.name), errClosed)
	}
	if err := s.take(int64(len(p))); err != nil {
		s.failed = err
		return 0, err
	}
	s.data = append(s.data, p...)
	return len(p), nil
}

func (s *memoryStream) take(bytes int64) error {
	if err := s.memory.faults.hit(OpWrite); err != nil {
		return fmt.Errorf("write %s: %w", memoryPath(s.name), err)
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.memory.takeLocked("write "+memoryPath(s.name), bytes)
}

func (s *memoryStream) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("commit %s: %w", memoryPath(s.name), errClosed)
	}
	err := s.failed
	if fault := s.memory.faults.hit(OpSync); err == nil && fault != nil {
		err = fmt.Errorf("replace %s: %w", memoryPath(s.name), fault)
	}
	if err != nil {
		s.abortLocked()
		return err
	}
	s.closed = true
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.used -= int64(len(s.memory.meta[s.name]))
	s.memory.meta[s.name] = s.data
	return nil
}

func (s *memoryStream) Abort() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abortLocked()
	return nil
}

func (s *memoryStream) Close() error { return s.Abort() }

func (s *memoryStream) abortLocked() {
	if s.closed {
		return
	}
	s.closed = true
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.used -= int64(len(s.data))
	s.data = nil
}
