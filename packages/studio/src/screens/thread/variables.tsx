import { useState, type FormEvent, type ReactNode } from 'react'
import { ErrorBox, Time } from '../../parts/basics.tsx'
import { line, plural } from '../../parts/format.ts'
import { useMay, useStudio } from '../../state/studio.ts'
import type { ShownThread } from '../../state/tree.ts'

/** Values that children of the thread need before they can be created. */
export function Variables({ thread }: { readonly thread: ShownThread }): ReactNode {
  const mayWrite = useMay('env:write')
  return [...thread.facts.variables].map(([requestId, { missing, at, toolName }]) => (
    <section key={requestId} className="ask" aria-label="Variables that a child needs">
      <h2 className="ask-title">
        {line(toolName, 60)} needs {plural(missing.length, 'value')} before it can start
      </h2>
      <p className="soft">
        Asked <Time at={at} className="num" />. The values go to the server once; they are kept
        encrypted and are never shown again.
      </p>
      {mayWrite ? (
        <VariablesForm threadId={thread.threadId} requestId={requestId} names={missing} />
      ) : (
        <p className="soft">You may not set variables.</p>
      )}
    </section>
  ))
}

function VariablesForm({
  threadId,
  requestId,
  names,
}: {
  readonly threadId: string
  readonly requestId: string
  readonly names: readonly string[]
}): ReactNode {
  const { client, notify } = useStudio()
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [error, setError] = useState<unknown>()
  const isComplete = names.every((name) => (values[name] ?? '') !== '')
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    try {
      await client.threads.variables.provide(threadId, requestId, values)
      notify('Given. The child starts.')
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <form className="stack" onSubmit={(event) => void submit(event)}>
      {names.map((name) => (
        <label key={name}>
          <span className="mono">{line(name, 60)}</span>
          <input
            className="field"
            type="password"
            autoComplete="off"
            value={values[name] ?? ''}
            onChange={(event) => setValues({ ...values, [name]: event.target.value })}
          />
        </label>
      ))}
      {error !== undefined && <ErrorBox error={error} />}
      <div className="btns">
        <button className="btn" disabled={!isComplete}>
          Give these values
        </button>
      </div>
    </form>
  )
}
