import { type ReactNode, useEffect, useState } from 'react'
import { CheckIcon as Check, CopyIcon } from '../icons/lucide.ts'

/** A button that copies a text. */
export function Copy({
  text,
  label = 'Copy',
}: {
  readonly text: string
  readonly label?: string
}): ReactNode {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <button
      type="button"
      className="btn quiet icon tiny"
      aria-label={isCopied ? 'Copied' : label}
      title={isCopied ? 'Copied' : label}
      onClick={() => void copyText(text).then(setCopied)}
    >
      {isCopied ? <Check size={14} aria-hidden /> : <CopyIcon size={14} aria-hidden />}
    </button>
  )
}

/** Copies a text. Pages that came over plain HTTP from another machine have no clipboard, so this can fail. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** A command to run in a terminal. */
export function CommandLine({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="cmd">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label="Copy the command" />
    </div>
  )
}
