import { useState } from 'preact/hooks';
import { signIn } from '../net/auth';

/** Explains how to sign in. */
export function Login({ problem }: { problem: string }) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(problem);
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    setWrong(await signIn(text.trim()));
    setBusy(false);
  };
  return (
    <main id="main" class="login">
      <h1>waza</h1>
      {wrong && <p class="why" role="alert">You are not signed in: {wrong}.</p>}
      <p>
        <code>waza serve</code> prints a link to this page on its terminal, and <code>waza run --dashboard</code> another. A link
        opens once, within ten minutes.
      </p>
      <p>
        Or paste an access token, which <code>waza token create --ttl 30d</code> prints:
      </p>
      <form onSubmit={(e) => void submit(e)}>
        <label for="token">Access token</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} />
        <button type="submit" class="primary" disabled={busy || !text.trim()}>Sign in</button>
      </form>
    </main>
  );
}
