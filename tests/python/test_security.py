# SPDX-License-Identifier: BSD-2-Clause
"""Security: keys, identities and rights, as Python sees them."""
import os

import numpy as np
import pytest
import weft


@pytest.fixture(name='key')
def key_file(tmp_path, monkeypatch):
    """A key file, which nodes opened from now on have."""
    path = tmp_path / 'key'
    path.write_bytes(os.urandom(32))
    path.chmod(0o400)
    monkeypatch.setenv('WEFT_KEY_FILE', str(path))
    return path


def test_a_peer_has_the_identity_of_its_key(key):
    assert key.exists()
    with weft.Node(provider='tcp') as here, weft.Node(provider='tcp', security='keyed') as keyed, \
            weft.Node(provider='tcp', security='sealed') as there:
        peer = here.peer(there.address)
        with pytest.raises(weft.Error):
            print(peer.identity)
        peer.ping().result()
        assert peer.identity.startswith('key:') and len(peer.identity) == 20
        with pytest.raises(weft.Error, match='neither gives way'):
            here.peer(keyed.address).ping(timeout=20).result()


def test_nodes_of_one_process_may_have_settings_of_their_own(tmp_path):
    path = tmp_path / 'key'
    path.write_bytes(os.urandom(32))
    path.chmod(0o400)
    key = {'WEFT_KEY_FILE': str(path)}
    with weft.Node(provider='tcp', settings=key) as here, weft.Node(provider='tcp', settings=key) as there, \
            weft.Node(provider='tcp') as without:
        here.peer(there.address).ping().result()
        with pytest.raises(weft.Error, match='has no key'):
            here.peer(without.address).ping(timeout=20).result()
    with pytest.raises(weft.Error, match='WEFT_LOSST=5s'):
        weft.Node(settings={'WEFT_LOSST': '5s'})


def test_without_keys_a_peer_has_no_identity():
    with weft.Node(provider='tcp') as here, weft.Node(provider='tcp') as there:
        peer = here.peer(there.address)
        peer.ping().result()
        assert peer.identity == ''


def test_rights_that_change_hold_from_rekey_on(key, tmp_path, monkeypatch):
    assert key.exists()
    allow = tmp_path / 'allow'
    allow.write_text('allow key:* tensors some\n')
    with weft.Node(provider='tcp') as here:
        monkeypatch.setenv('WEFT_ALLOW', str(allow))
        with weft.Node(provider='tcp') as there:
            peer = here.peer(there.address)
            long = np.arange(1 << 20, dtype=np.uint8)
            with pytest.raises(weft.Error) as refused:
                peer.send(1, 'other', long).result(timeout=30)
            assert refused.value.status == weft.Status.PERMISSION_DENIED
            allow.write_text('allow key:* tensors *\n')
            there.rekey()
            got = there.recv(2, 'other')
            peer.send(2, 'other', long).result(timeout=30)
            assert (np.asarray(got.result(timeout=30)) == long).all()
            assert there.counters()['rights_refused'] == 1
            allow.write_text('nonsense\n')
            with pytest.raises(weft.Error, match='allow:1: expected allow'):
                there.rekey()


def test_a_mode_that_there_is_not_opens_no_node():
    with pytest.raises(weft.InvalidArgument, match='sealed'):
        weft.Node(provider='tcp', security='closed')
