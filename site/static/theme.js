// Before anything is drawn: the theme that the reader chose, else that of the system.
{
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
