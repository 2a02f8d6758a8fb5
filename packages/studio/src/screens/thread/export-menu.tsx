import { type ReactNode, useState } from 'react'
import { Download } from '../../icons/lucide.ts'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Menu, MenuItem } from '../../parts/menu.tsx'
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
    text: 'For reading or sending: without scripts, and without anything from other sites.',
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
