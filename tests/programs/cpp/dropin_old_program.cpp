// An old program: it uses CRedLock and CLock, and gets printf, cout, string, vector and sds from
// the one header. Given host port host port ...; its last line is "done".
#include <stdlib.h>
#include <unistd.h>
#include "redlock-cpp/redlock.h"

class Job {
public:
    Job(CRedLock * dlm, const char * name) : m_dlm(dlm), m_name(name) {}

    bool RunOnce() {
        CLock my_lock;
        bool flag = m_dlm->Lock(m_name.c_str(), 10000, my_lock);
        if (flag) {
            sds val = my_lock.m_val;
            printf("acquired, name of %d characters, res:%s, vttl:%d\n",
                   (int)string(val).size(), my_lock.m_resource, my_lock.m_validityTime);
            m_dlm->Unlock(my_lock);
        } else {
            printf("not acquired, name:%s\n", my_lock.m_val);
        }
        return flag;
    }

    bool RunOn(int rounds) {
        while (1) {
            CLock my_lock;
            bool flag = m_dlm->ContinueLock(m_name.c_str(), 10000, my_lock);
            if (!flag) {
                printf("not acquired, name:%s\n", my_lock.m_val);
                return false;
            }
            sds val = my_lock.m_val;
            m_seen.push_back(val);
            if ((int)m_seen.size() == rounds) {
                return m_dlm->Unlock(my_lock);
            }
        }
    }

    size_t Rounds() const { return m_seen.size(); }

private:
    CRedLock *      m_dlm;
    string          m_name;
    vector<string>  m_seen;
};

int main (int argc, char **argv) {
    CRedLock * dlm = new CRedLock();
    for (int i = 1; i + 1 < argc; i += 2) {
        dlm->AddServerUrl(argv[i], atoi(argv[i + 1]));
    }
    dlm->SetRetry(3, 200);

    Job once(dlm, "old:once");
    Job on(dlm, "old:on");
    bool flag = once.RunOnce() && on.RunOn(3) && once.RunOnce();
    sleep((unsigned)rand() % 1);
    cout << on.Rounds() << " rounds" << endl;
    delete dlm;

    if (!flag) {
        return 1;
    }
    cout << "done" << endl;
    return 0;
}
