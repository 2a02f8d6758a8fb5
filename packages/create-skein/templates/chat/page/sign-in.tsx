import { useState, type ReactNode } from 'react'
import { signIn } from './session.ts'

/** Asks for name and password. */
export function SignIn({ done }: { done: () => void }): ReactNode {
  const [problem, setProblem] = useState('')
  const [isBusy, setIsBusy] = useState(false)

  async function submit(form: FormData): Promise<void> {
    setIsBusy(true)
    try {
      const isRight = await signIn(String(form.get('name')), String(form.get('password')))
      if (isRight) done()
      else setProblem('Name or password is wrong.')
    } catch (error) {
      setProblem((error as Error).message)
    } finally {
      setIsBusy(false)
    }
  }

  return (
    <main className="sign-in">
      <h1>Sign in</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit(new FormData(event.currentTarget))
        }}
      >
        <label>
          Name <input name="name" autoComplete="username" autoFocus required />
        </label>
        <label>
          Password
          <input name="password" type="password" autoComplete="current-password" required />
        </label>
        {problem && <p role="alert">{problem}</p>}
        <button disabled={isBusy}>Sign in</button>
      </form>
    </main>
  )
}
