import { StrictMode, useState, type ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import { Chat, loadPast, type Past } from './chat.tsx'
import { SignedOut } from './session.ts'
import { SignIn } from './sign-in.tsx'
import './page.css'

/** What a page that opens can show: the chat, the form to sign in, or what went wrong. */
async function open(): Promise<Past | Error> {
  try {
    return await loadPast()
  } catch (error) {
    return error as Error
  }
}

function App({ first }: { first: Past | Error }): ReactNode {
  const [state, setState] = useState(first)
  const reopen = async (): Promise<void> => setState(await open())
  if (state instanceof SignedOut) return <SignIn done={() => void reopen()} />
  if (state instanceof Error)
    return (
      <main className="sign-in">
        <p role="alert">{state.message}</p>
        <button onClick={() => void reopen()}>Try again</button>
      </main>
    )
  return <Chat past={state} signedOut={() => setState(new SignedOut())} />
}

const first = await open()
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App first={first} />
  </StrictMode>,
)
