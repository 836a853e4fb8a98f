module redlock.example/redlock

go 1.19
