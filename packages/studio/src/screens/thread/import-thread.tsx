import { type ReactNode, useRef, useState } from 'react'
import { Dialog } from '../../parts/dialog.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { bytes } from '../../parts/format.ts'
import { useAddress } from '../../state/address.ts'
import { useStudio } from '../../state/studio.ts'

/** Makes a new thread from an exported file and opens it. */
export function ImportThread({ onClose }: { readonly onClose: () => void }): ReactNode {
  const { client, lists, notify } = useStudio()
  const [, go] = useAddress()
  const [file, setFile] = useState<File>()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const open = async (): Promise<void> => {
    if (!file || isBusy) return field.current?.focus()
    setBusy(true)
    setError(undefined)
    try {
      const { id } = await client.threads.import(await file.text())
      lists.refresh()
      onClose()
      notify('Imported. Nothing of it runs until you send a message.')
      go({ screen: 'thread', threadId: id })
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title="Import a thread" onClose={onClose}>
      <p className="soft">
        A file of JSON lines, as Export and <code>skein thread export</code> write it. It becomes a
        new thread at rest; the original is not changed.
      </p>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void open()
        }}
      >
        <label>
          <span>File{file && `, ${bytes(file.size)}`}</span>
          <input
            ref={field}
            type="file"
            accept=".jsonl,application/jsonl"
            onChange={(event) => setFile(event.target.files?.[0])}
          />
        </label>
        {error !== undefined && <ErrorBox error={error} />}
        <div className="btns">
          <button className="btn primary" disabled={isBusy || !file}>
            Import and open
          </button>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}
