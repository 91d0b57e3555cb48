"""The application that with_django.py migrates and uses."""
