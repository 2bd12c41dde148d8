# SPDX-License-Identifier: BSD-2-Clause
"""Servers that start with a key, or in a place that is not so plain, or say why not."""
import os
import subprocess
import tempfile
import unittest

import cluster
import graphs

# Runs a command that sees the file that comes first in the place of /etc/hosts.
OTHER_HOSTS = ['unshare', '-rm', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"']
SANITIZED = 'asan' in os.environ.get('LD_PRELOAD', '')


class Start(unittest.TestCase):
    """Settings of a server's environment."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text, mode=0o600):
        """The path of a fresh file."""
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='ascii') as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def sees(self, task, names):
        """What a command of @task begins with that sees @names in /etc/hosts, beside localhost."""
        command = [*OTHER_HOSTS, self.file(task, '127.0.0.1 localhost\n' + names)]
        ran = subprocess.run([*command, 'true'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False)
        if ran.returncode:
            self.skipTest('no other /etc/hosts can be had: ' + ran.stdout.strip())
        return command

    def test_a_host_that_does_not_know_its_own_name_is_reached_over_weft(self):
        hosts = {'ps': ('weft-ps', self.sees('ps', '127.0.0.1 weft-worker\n')),
                 'worker': ('weft-worker', self.sees('worker', '127.0.0.1 weft-worker weft-ps\n'))}
        with cluster.Cluster({'ps': 1, 'worker': 1}, provider='tcp', hosts=hosts) as tasks:
            self.assertEqual(tasks.call('worker:0', graphs.variable, 100003), 3.0 * 100003)
            self.assertGreater(tasks.counters('worker:0').get('received_over_tcp', 0), 0)
            self.assertIn('offers its tensors at weft-ps:', tasks.log('ps:0'))
            self.assertIn('is open to every host of its network', tasks.log('ps:0'))

    def test_a_host_whose_name_means_loopback_there_is_told_of_a_setting(self):
        command = self.sees('worker', '127.0.1.1 weft-worker\n')
        with cluster.Cluster({'worker': 1}, hosts={'worker': ('weft-worker', command)}) as tasks:
            self.assertRegex(tasks.log('worker:0'),
                             r'weft-worker is 127\.0\.1\.1:\d+ here, .* WEFT_LISTEN')

    @unittest.skipIf(SANITIZED, 'the sanitizer has a malloc')
    def test_tasks_that_share_a_key_reach_each_other_over_weft(self):
        key = self.file('key', 'k' * 32)
        with cluster.Cluster({'ps': 1, 'worker': 1}, provider='tcp',
                             env={'WEFT_KEY_FILE': key}) as tasks:
            self.assertEqual(tasks.call('worker:0', graphs.variable, 100003), 3.0 * 100003)
            counters = tasks.counters('worker:0')
            self.assertGreater(counters.get('received_over_tcp', 0), 0)
            self.assertEqual(counters.get('received_grpc', 0), 0)

    @unittest.skipIf(SANITIZED, 'the sanitizer has a malloc')
    def test_a_key_file_that_others_may_read_is_what_a_server_that_ends_for_it_names(self):
        key = self.file('key', 'k' * 32, 0o644)
        tasks = cluster.Cluster({'ps': 1}, env={'WEFT_KEY_FILE': key})
        with self.assertRaises(cluster.Failed) as caught, tasks:
            pass
        self.assertIn('has mode 644', caught.exception.text)
        self.assertNotIn('is open to every host', caught.exception.text)


if __name__ == '__main__':
    unittest.main()
