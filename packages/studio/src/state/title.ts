import { useEffect } from 'react'
import iconUrl from '../styles/icon.svg'

/** Shows the number of waiting decisions in the title and in the icon of the browser tab. */
export function useBadge(count: number): void {
  useEffect(() => {
    const name = document.title.replace(/^\(\d+\) /, '')
    document.title = count > 0 ? `(${count}) ${name}` : name
    void drawIcon(count)
  }, [count])
}

/** Sets the title of the page; the number of waiting decisions before it stays. */
export function useTitle(title: string): void {
  useEffect(() => {
    const count = /^\(\d+\) /.exec(document.title)?.[0] ?? ''
    document.title = `${count}${title}`
  }, [title])
}

async function drawIcon(count: number): Promise<void> {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
  if (!link) return
  if (count === 0) {
    link.href = iconUrl
    link.type = 'image/svg+xml'
    return
  }
  const image = new Image()
  image.src = iconUrl
  await image.decode().catch(() => undefined) // without the picture the number is still drawn
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 64
  const context = canvas.getContext('2d')
  if (!context) return
  context.drawImage(image, 0, 0, 64, 64)
  context.fillStyle = '#b26f00'
  context.beginPath()
  context.arc(44, 44, 20, 0, 2 * Math.PI)
  context.fill()
  context.fillStyle = '#fff'
  context.font = 'bold 28px sans-serif'
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  context.fillText(count > 9 ? '9+' : String(count), 44, 46)
  link.type = 'image/png'
  link.href = canvas.toDataURL('image/png')
}
