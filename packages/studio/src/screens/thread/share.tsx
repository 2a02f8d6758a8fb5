import { useRef, useState, type ReactNode } from 'react'
import { Download } from '../../icons/lucide.ts'
import { Dialog, ErrorBox } from '../../parts/basics.tsx'
import { bytes } from '../../parts/format.ts'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { useAddress } from '../../state/address.ts'
import { useStudio } from '../../state/studio.ts'

const FORMATS = [
  {
    format: 'thread',
    name: 'thread.json',
    title: 'ThreadProtocol JSON',
    text: 'The conversation as one document, for other tools.',
  },
  {
    format: 'jsonl',
    name: 'thread.jsonl',
    title: 'JSON lines',
    text: 'Every event and file. It can be imported here again.',
  },
  {
    format: 'html',
    name: 'thread.html',
    title: 'One HTML file',
    text: 'To read or to send: without scripts, and without anything from other sites.',
  },
] as const

/** Saves a thread as a file in one of several formats. None contains secrets, approval tokens or grants. */
export function ExportMenu({ threadId }: { readonly threadId: string }): ReactNode {
  const { fetch, url, notify } = useStudio()
  const [error, setError] = useState<unknown>()
  const save = async ({ format, name }: (typeof FORMATS)[number]): Promise<void> => {
    setError(undefined)
    try {
      const path = `threads/${encodeURIComponent(threadId)}/export?format=${format}`
      const response = await fetch(`${url}/${path}`)
      if (!response.ok) throw await refusal(response)
      download(await response.blob(), name.replace('thread', `thread-${threadId.slice(-8)}`))
      notify('Saved. Secrets and approval tokens are not in the file.')
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <>
      <Menu
        className="btn quiet"
        label={
          <>
            <Download size={15} aria-hidden /> Export
          </>
        }
      >
        {(close) =>
          FORMATS.map((one) => (
            <MenuItem
              key={one.format}
              title={one.title}
              text={one.text}
              onClick={() => {
                void save(one)
                close()
              }}
            />
          ))
        }
      </Menu>
      {error !== undefined && <ErrorBox error={error} />}
    </>
  )
}

async function refusal(response: Response): Promise<Error> {
  const { error } = (await response.json()) as { error: { message: string } } // an error of ours has this shape
  return Object.assign(new Error(error.message), error)
}

function download(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

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
