/** How the index is made and asked: the build and the page must agree. */
export const searchOptions = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page', 'url'],
  tokenize,
  searchOptions: {
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 4 ? 0.15 : false),
    boost: { title: 4, page: 2 },
    combineWith: 'AND',
  },
}

/** Words; a name like `defineAgent` or `INPUT_INVALID` also by its parts. */
function tokenize(text) {
  return (text.match(/[\p{L}\p{N}_$@]+/gu) ?? []).flatMap((word) => {
    const parts = word.split(/_|(?<=[a-z\d])(?=[A-Z])/).filter((part) => part !== '')
    return parts.length > 1 ? [word, ...parts] : [word]
  })
}
