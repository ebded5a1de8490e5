// copying makes the buttons copy the command before them.
export function copying() {
  if (!navigator.clipboard) return; // the page did not come by TLS or from the loopback
  for (const button of document.querySelectorAll('button.copy')) {
    button.hidden = false;
    button.onclick = async () => {
      await navigator.clipboard.writeText(button.closest('.curl').querySelector('code').textContent);
      button.textContent = 'Copied';
      document.getElementById('said').textContent = 'The command is copied.';
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    };
  }
}
