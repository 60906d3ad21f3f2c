package main

import "context"

func table(ctx context.Context, args []string) error { return nil }
