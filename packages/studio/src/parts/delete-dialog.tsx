import { type ReactNode, useState } from 'react'
import { X } from '../icons/lucide.ts'
import { useStudio } from '../state/studio.ts'
import { Dialog } from './dialog.tsx'
import { ErrorBox } from './error-box.tsx'
import { line, plural } from './format.ts'

/** Asks once, and then deletes the threads one after the other. */
export function DeleteDialog({
  threads,
  onClose,
  onDeleted,
}: {
  readonly threads: readonly { readonly id: string; readonly title: string }[]
  readonly onClose: () => void
  readonly onDeleted: () => void
}): ReactNode {
  const { client, lists, notify } = useStudio()
  const [error, setError] = useState<unknown>()
  const [done, setDone] = useState<number>()
  const remove = async (): Promise<void> => {
    setError(undefined)
    try {
      for (const [index, { id }] of threads.entries()) {
        setDone(index)
        await client.threads.remove(id)
      }
      notify(`Deleted ${plural(threads.length, 'thread')}.`)
      onDeleted()
      onClose()
    } catch (failure) {
      setError(failure)
      setDone(undefined)
    } finally {
      lists.refresh()
    }
  }
  const heading = threads.length === 1 ? 'Delete this thread' : `Delete ${threads.length} threads`
  return (
    <Dialog title={heading} onClose={onClose}>
      <div className="stack">
        <ul className="soft plain-list">
          {threads.slice(0, 5).map(({ id, title }) => (
            <li key={id}>{line(title, 100)}</li>
          ))}
          {threads.length > 5 && <li>and {threads.length - 5} more</li>}
        </ul>
        <p>
          Ends what is running and removes everything, with all children: messages, files and
          waiting approvals. <b className="bad">This cannot be undone.</b>
        </p>
        {error !== undefined && <ErrorBox error={error} />}
        <div className="btns">
          <button
            type="button"
            className="btn no"
            disabled={done !== undefined}
            onClick={() => void remove()}
          >
            <X size={14} aria-hidden />{' '}
            {done === undefined ? 'Delete' : `Deleting ${done + 1} of ${threads.length} …`}
          </button>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  )
}
