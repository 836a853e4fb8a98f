module redlock.example/waiters

go 1.19

require redlock.example/redlock v0.0.0

replace redlock.example/redlock => ../../../bindings/go
