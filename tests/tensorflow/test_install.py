# SPDX-License-Identifier: BSD-2-Clause
"""What the plug-in says when it does not fit."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITE = os.environ.get('PYTHONPATH', '')   # where `run` has installed the plug-in


def last_line(command, **env):
    """The last line that @command writes, which fails."""
    ran = subprocess.run(command, env=dict(os.environ, **env), stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not ran.returncode:
        raise AssertionError('%s ended well:\n%s' % (command, ran.stdout))
    return ran.stdout.strip().splitlines()[-1]


class Install(unittest.TestCase):
    """Sentences."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @unittest.skipUnless(os.path.isdir(os.path.join(SITE, 'weft_tensorflow')),
                         'the plug-in was not installed by tests/tensorflow/run')
    def test_another_release_of_tensorflow_is_refused_before_the_library_is_loaded(self):
        copy = os.path.join(self.folder, 'weft_tensorflow')
        shutil.copytree(os.path.join(SITE, 'weft_tensorflow'), copy)
        with open(os.path.join(copy, '_built.py'), 'a', encoding='ascii') as built:
            built.write("TENSORFLOW = '2.0.7'\n")
        os.remove(os.path.join(copy, 'libweft_tensorflow.so'))
        self.assertRegex(last_line([sys.executable, '-c', 'import weft_tensorflow'],
                                   PYTHONPATH=self.folder),
                         r'^ImportError: weft_tensorflow .* was built for TensorFlow 2\.0\.7, and '
                         r'this is TensorFlow [0-9.]+: install weft_tensorflow again')

    def setup(self, **env):
        """What setup.py says at the end of a build that fails."""
        copy = os.path.join(self.folder, 'source')
        shutil.copytree(os.path.join(TOP, 'src', 'tensorflow'), copy)
        return last_line([sys.executable, '-c', 'import os, runpy, sys; os.chdir(sys.argv[1]); '
                          'sys.argv[1:] = ["build"]; runpy.run_path("setup.py")', copy], **env)

    def test_a_build_without_weft_says_so(self):
        self.assertIn('weft-tensorflow needs weft to be installed',
                      self.setup(PKG_CONFIG_LIBDIR=self.folder, PKG_CONFIG_PATH=''))

    def test_a_build_without_pkg_config_says_so(self):
        self.assertEqual('weft-tensorflow needs pkg-config', self.setup(PATH=self.folder))


if __name__ == '__main__':
    unittest.main()
