import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { LogOut } from '../icons/lucide.ts'
import { ErrorBox } from '../parts/error-box.tsx'
import { useStudio } from '../state/studio.ts'
import iconUrl from '../styles/icon.svg'
import { line } from '../parts/format.ts'
import { useStore } from '../state/store.ts'

/** A form for an API key. The key is sent to the server once and is not kept in the page. */
export function SignIn(): ReactNode {
  const { signIn } = useStudio()
  const [key, setKey] = useState('')
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    await signIn(key.trim()).catch(setError)
    setBusy(false)
  }
  return (
    <main className="sign-in">
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <h1>
          <img src={iconUrl} alt="" /> Skein Studio
        </h1>
        <p className="soft">
          This server asks who you are. Sign in with one of its keys, which decides what you can see
          and do.
        </p>
        <label>
          <span>Key</span>
          <input
            ref={field}
            className="field"
            type="password"
            autoComplete="current-password"
            required
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {error !== undefined && <ErrorBox error={error} />}
        <button className="btn primary" disabled={isBusy || key.trim() === ''}>
          Sign in
        </button>
        <p className="soft small">
          The key is kept in a cookie that scripts cannot read, for twelve hours at most.
        </p>
      </form>
    </main>
  )
}

/** Shows who is signed in, with a button to sign out; nothing if the server asks no one to sign in. */
export function Account(): ReactNode {
  const { me, signOut } = useStudio()
  const who = useStore(me)
  if (!who?.isSignedIn) return null
  const name = who.name ?? who.user ?? who.tenant
  return (
    <button
      type="button"
      className="btn quiet"
      title={`${name}, tenant ${who.tenant}. Sign out`}
      onClick={() => void signOut()}
    >
      <span className="cut">{line(name, 24)}</span>
      <LogOut size={15} aria-hidden />
      <span className="hidden">Sign out</span>
    </button>
  )
}
