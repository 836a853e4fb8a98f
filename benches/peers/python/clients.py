"""The measured Python libraries, each behind the same four calls."""

import redis

TTL_S = 30


class RedisPy:
    """The lock of redis-py itself, on a single server."""

    def __init__(self, shared, resource):
        (server,) = shared
        self._lock = server.lock(resource, timeout=TTL_S, thread_local=False)

    @staticmethod
    def connect(ports):
        return [redis.Redis(port=port) for port in ports]

    def acquire(self):
        return self._lock.acquire()

    wait = acquire

    def release(self):
        self._lock.release()
        return True


class RedlockPy:
    """One client per worker: redlock-py asks one server after the other."""

    def __init__(self, shared, resource):
        import redlock

        self._client = redlock.Redlock([{"host": "127.0.0.1", "port": port} for port in shared])
        self._resource = resource
        self._lock = None

    @staticmethod
    def connect(ports):
        return ports

    def acquire(self):
        self._lock = self._client.lock(self._resource, TTL_S * 1000)
        return bool(self._lock)

    def wait(self):
        while not self.acquire():
            pass
        return True

    def release(self):
        self._client.unlock(self._lock)
        return True


class Pottery:
    """Asks all servers at once, from a thread pool that is made for each call."""

    def __init__(self, shared, resource):
        from pottery import Redlock

        self._lock = Redlock(key=resource, masters=shared, auto_release_time=TTL_S)

    @staticmethod
    def connect(ports):
        return {redis.Redis(port=port) for port in ports}

    def acquire(self):
        return self._lock.acquire()

    wait = acquire

    def release(self):
        self._lock.release()
        return True


BY_NAME = {"redis-py": RedisPy, "redlock-py": RedlockPy, "pottery": Pottery}
