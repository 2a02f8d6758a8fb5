// What a page of the site adds to reading: search, theme, menu, copy. Without it every page is readable.
import MiniSearch from 'minisearch'
import { search as searchIn, searchOptions } from './search-options.js'

const { up, search } = document.body.dataset
const find = (selector) => document.querySelector(selector)

// Served by Studio there is a way back to it.
if (/\/studio\/docs\//.test(location.pathname)) find('.to-studio').hidden = false

const menu = find('.menu')
menu.addEventListener('click', () => {
  const isOpen = find('#nav').classList.toggle('is-open')
  menu.setAttribute('aria-expanded', String(isOpen))
})
const current = find('#nav [aria-current]')
if (current) find('#nav').scrollTop = current.offsetTop - 200

// The same setting as Studio's, so that the two look alike.
const themes = { system: 'light', light: 'dark', dark: 'system' }
const names = { system: 'as the system', light: 'light', dark: 'dark' }
const themeButton = find('.theme')
const chosen = () => document.documentElement.dataset.theme ?? 'system'
const nameTheme = () => themeButton.setAttribute('aria-label', `Theme: ${names[chosen()]}`)
nameTheme()
themeButton.addEventListener('click', () => {
  const next = themes[chosen()]
  if (next === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  try {
    if (next === 'system') localStorage.removeItem('studio.theme')
    else localStorage.setItem('studio.theme', next)
  } catch {
    // Storage may be forbidden; the theme then holds for this page.
  }
  nameTheme()
})

for (const block of document.querySelectorAll('.code')) {
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.textContent = 'Copy'
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code').textContent)
    copy.textContent = 'Copied'
    setTimeout(() => (copy.textContent = 'Copy'), 1500)
  })
  block.append(copy)
}

const finder = find('.finder')
const input = finder.querySelector('input')
const hits = finder.querySelector('ul')
const status = finder.querySelector('p')
let index
let selected = 0

async function openFinder() {
  finder.showModal()
  input.select()
  if (index) return
  status.textContent = 'Reading the index…'
  try {
    const answer = await fetch(search)
    index = MiniSearch.loadJS(await answer.json(), searchOptions)
    show()
  } catch {
    status.textContent = 'The index cannot be read. Close and try again.'
  }
}

function show() {
  const query = input.value.trim()
  const found = index ? searchIn(index, query).slice(0, 20) : []
  hits.replaceChildren(
    ...found.map(({ url, title, page }, number) => {
      const item = document.createElement('li')
      item.id = `hit-${number}`
      item.role = 'option'
      const link = document.createElement('a')
      link.href = up + url
      link.tabIndex = -1
      link.textContent = title
      const where = document.createElement('span')
      where.textContent = page === title ? url.replace(/\.html.*/, '') : page
      link.append(where)
      item.append(link)
      return item
    }),
  )
  status.textContent =
    query === ''
      ? 'Type a word, a name or an error code.'
      : found.length === 0
        ? 'Nothing found.'
        : ''
  select(0)
}

function select(number) {
  const items = [...hits.children]
  selected = items.length === 0 ? 0 : (number + items.length) % items.length
  for (const [at, item] of items.entries())
    item.setAttribute('aria-selected', String(at === selected))
  const item = items[selected]
  if (item) {
    input.setAttribute('aria-activedescendant', item.id)
    item.scrollIntoView({ block: 'nearest' })
  } else input.removeAttribute('aria-activedescendant')
}

find('button.search').addEventListener('click', openFinder)
input.addEventListener('input', show)
input.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowDown') select(selected + 1)
  else if (event.key === 'ArrowUp') select(selected - 1)
  else if (event.key === 'Enter') hits.children[selected]?.querySelector('a').click()
  else return
  event.preventDefault()
})
hits.addEventListener('click', () => finder.close())
finder.addEventListener('click', (event) => {
  if (event.target === finder) finder.close()
})
document.addEventListener('keydown', (event) => {
  const isTyping = /^(?:input|textarea|select)$/i.test(event.target.tagName)
  const isShortcut =
    (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) ||
    (event.key === 'k' && (event.ctrlKey || event.metaKey))
  if (!isShortcut || finder.open) return
  event.preventDefault()
  void openFinder()
})
