import { useState, type FormEvent, type ReactNode } from 'react'
import { Dialog } from '../../parts/dialog.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { DeleteDialog } from '../../parts/delete-dialog.tsx'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { useAddress } from '../../state/address.ts'
import { useMay, useStudio } from '../../state/studio.ts'

/** Renames or deletes the thread on the screen. */
export function ThreadMenu({
  threadId,
  title,
}: {
  readonly threadId: string
  readonly title: string
}): ReactNode {
  const [, go] = useAddress()
  const [open, setOpen] = useState<'rename' | 'delete'>()
  if (!useMay('threads:write')) return null
  const close = (): void => setOpen(undefined)
  return (
    <>
      <Menu className="btn quiet" label="More">
        {(closeMenu) => (
          <>
            <MenuItem
              title="Rename…"
              text="Changes the title of the thread in every list."
              onClick={() => {
                closeMenu()
                setOpen('rename')
              }}
            />
            <MenuItem
              title="Delete…"
              text="Ends the thread and removes it with all its children."
              onClick={() => {
                closeMenu()
                setOpen('delete')
              }}
            />
          </>
        )}
      </Menu>
      {open === 'rename' && <RenameDialog threadId={threadId} title={title} onClose={close} />}
      {open === 'delete' && (
        <DeleteDialog
          threads={[{ id: threadId, title }]}
          onClose={close}
          onDeleted={() => go({ screen: 'threads' })}
        />
      )}
    </>
  )
}

function RenameDialog({
  threadId,
  title,
  onClose,
}: {
  readonly threadId: string
  readonly title: string
  readonly onClose: () => void
}): ReactNode {
  const { client, lists } = useStudio()
  const [text, setText] = useState(title)
  const [error, setError] = useState<unknown>()
  const rename = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() === '') return
    client.threads.update(threadId, { title: text.trim() }).then(() => {
      lists.refresh()
      onClose()
    }, setError)
  }
  return (
    <Dialog title="Rename this thread" onClose={onClose}>
      <form className="stack" onSubmit={rename}>
        <label>
          <span>Title</span>
          <input
            className="field"
            maxLength={256}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        {error !== undefined && <ErrorBox error={error} />}
        <div className="btns">
          <button className="btn" disabled={text.trim() === ''}>
            Rename
          </button>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}
